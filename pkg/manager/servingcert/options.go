package servingcert

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

// DefaultLifetime is the default of Options.Lifetime.
const DefaultLifetime = 90 * 24 * time.Hour

const defaultSettle = time.Minute

// Options of a Rotator.
type Options struct {
	// Namespace and SecretName of the Secret that the replicas share. The chart creates it empty.
	// If it's missing, the manager tries to create it, which its default rights don't allow.
	Namespace, SecretName string
	// DNSNames that the certificate is for, such as those that ServiceNames returns.
	DNSNames []string
	// Lifetime of a certificate. It's replaced in the last third. Default 90 days.
	Lifetime time.Duration
	// Settle is the time between injecting a new certificate and serving it: longer than the API
	// servers take to observe it. At most a sixth of Lifetime. Default 1 minute.
	Settle time.Duration
	// Targets have the bundle injected; at most one of each kind.
	Targets []Target
}

// ServiceNames are the DNS names of a Service.
func ServiceNames(service, namespace string) []string {
	name := service + "." + namespace
	return []string{name + ".svc", name + ".svc.cluster.local", name, service}
}

// complete sets defaults and reports all invalid settings.
func (o Options) complete() (Options, error) {
	if o.Lifetime == 0 {
		o.Lifetime = DefaultLifetime
	}
	if o.Settle == 0 {
		o.Settle = min(defaultSettle, o.Lifetime/6)
	}
	var errs []error
	for field, name := range map[string]string{"namespace": o.Namespace, "Secret's name": o.SecretName} {
		for _, problem := range validation.IsDNS1123Subdomain(name) {
			errs = append(errs, fmt.Errorf("%s %q: %s", field, name, problem))
		}
	}
	if len(o.DNSNames) == 0 {
		errs = append(errs, errors.New("DNS names: need at least one"))
	}
	if o.Lifetime < 6*time.Second {
		errs = append(errs, fmt.Errorf("lifetime: must be at least 6s, the clock of certificates counts in seconds, but is %s", o.Lifetime))
	}
	if o.Settle < 0 || o.Settle > o.Lifetime/6 {
		errs = append(errs, fmt.Errorf("settle: must be between 0 and a sixth of the lifetime (%s), but is %s", o.Lifetime/6, o.Settle))
	}
	kinds := map[string]bool{}
	for _, target := range o.Targets {
		if kinds[target.kind] {
			errs = append(errs, fmt.Errorf("targets: more than one %s", target.kind))
		}
		kinds[target.kind] = true
	}
	return o, errors.Join(errs...)
}
