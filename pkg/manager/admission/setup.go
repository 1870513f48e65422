package admission

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"path/filepath"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/jobferry/jobferry/pkg/util/process"
)

// The manager writes the caBundle of the configuration. The rights for registrations include the
// Secret.
//
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingwebhookconfigurations,resourceNames=jobferry-dispatch,verbs=list;watch;patch

// Setup adds the webhook to the manager, if it's enabled. Every replica serves it, and /readyz
// includes its certificate.
func Setup(mgr ctrl.Manager, options Options) error {
	if !options.Enabled {
		return nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if err := options.certify(mgr, config); err != nil {
		return fmt.Errorf("admission webhook: %w", err)
	}
	hooks := webhook.NewServer(webhook.Options{}) // for its metrics: it isn't started
	hooks.Register(path, limited(http.HandlerFunc(serveReview)))
	return process.Serve(mgr, "admission webhook", options.BindAddress, hooks.WebhookMux(), config)
}

// certify sets which certificate the server shows.
func (o *Options) certify(mgr ctrl.Manager, config *tls.Config) error {
	if o.CertDir != "" {
		watcher, err := certwatcher.New(filepath.Join(o.CertDir, "tls.crt"), filepath.Join(o.CertDir, "tls.key"))
		if err != nil {
			return err
		}
		config.GetCertificate = watcher.GetCertificate
		return mgr.Add(watcher)
	}
	rotator, err := o.rotator()
	if err != nil {
		return err
	}
	rotator.Configure(config)
	if err := mgr.AddReadyzCheck("admission-webhook", rotator.Ready); err != nil {
		return err
	}
	return rotator.SetupWithManager(mgr)
}
