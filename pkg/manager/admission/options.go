package admission

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/jobferry/jobferry/pkg/manager/servingcert"
)

// Names of the objects on the hub; the chart has them, too.
const (
	// ConfigurationName is the name of the MutatingWebhookConfiguration.
	ConfigurationName = "jobferry-dispatch"
	// SecretName is the name of the Secret with the manager's own certificates.
	SecretName = "jobferry-webhook-cert"
	// Path is where the webhook is served.
	Path = "/admit/jobs"
)

// Options say whether and how the webhook is served.
type Options struct {
	// Enabled: serve it. Default false, as hubs since 1.36 need none.
	Enabled bool
	// BindAddress is where, as host:port. Default ":9443".
	BindAddress string
	// Namespace of the Service and the Secret.
	Namespace string
	// Service is the name of the Service that the API server calls. Default jobferry-webhook.
	Service string
	// CertDir is a folder with tls.crt and tls.key, such as a Secret of cert-manager's; they're
	// read anew when they change. Empty, the default: the manager makes certificates itself, and
	// injects them.
	CertDir string
	// CertLifetime of certificates that the manager makes. Default 90 days.
	CertLifetime time.Duration
}

// DefaultOptions returns the defaults.
func DefaultOptions() Options {
	return Options{BindAddress: ":9443", Service: "jobferry-webhook", CertLifetime: servingcert.DefaultLifetime}
}

// Validate reports all settings that can't be used.
func (o *Options) Validate() error {
	if !o.Enabled {
		return nil
	}
	var errs []error
	if _, _, err := o.address(); err != nil {
		errs = append(errs, err)
	}
	for _, problem := range validation.IsDNS1035Label(o.Service) {
		errs = append(errs, fmt.Errorf("admission webhook's service %q: %s", o.Service, problem))
	}
	if o.CertDir != "" {
		return errors.Join(errs...)
	}
	if _, err := o.keeper(); err != nil {
		errs = append(errs, fmt.Errorf("admission webhook: %w", err))
	}
	return errors.Join(errs...)
}

func (o *Options) address() (host string, port int, err error) {
	host, text, err := net.SplitHostPort(o.BindAddress)
	if err == nil {
		port, err = strconv.Atoi(text)
	}
	if err != nil || port < 1 || port > 65535 {
		return "", 0, fmt.Errorf("admission webhook's address %q: must be host:port, or :port for all addresses", o.BindAddress)
	}
	return host, port, nil
}

func (o *Options) keeper() (*servingcert.Keeper, error) {
	return servingcert.New(servingcert.Options{
		Namespace: o.Namespace, SecretName: SecretName,
		DNSNames: servingcert.ServiceNames(o.Service, o.Namespace),
		Lifetime: o.CertLifetime,
		Targets:  []servingcert.Target{servingcert.MutatingWebhooks(ConfigurationName)},
	})
}
