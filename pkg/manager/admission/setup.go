package admission

import (
	"context"
	"crypto/tls"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// The configuration is written for its caBundle, and read by name. The Secret is covered by the
// permissions for registrations.
//
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingwebhookconfigurations,resourceNames=jobferry-dispatch,verbs=get;list;watch;patch

// Setup adds the webhook to the manager, if it's enabled: served by every replica, and part of
// /readyz.
func Setup(mgr ctrl.Manager, options Options) error {
	if !options.Enabled {
		return nil
	}
	host, port, err := options.address()
	if err != nil {
		return err
	}
	serve := webhook.Options{Host: host, Port: port, CertDir: options.CertDir}
	if options.CertDir == "" {
		own, err := options.setupKeeper(mgr)
		if err != nil {
			return err
		}
		serve.TLSOpts = append(serve.TLSOpts, own)
	}
	server := webhook.NewServer(serve)
	server.Register(Path, &admission.Webhook{Handler: admission.HandlerFunc(
		func(_ context.Context, request admission.Request) admission.Response {
			return Review(&request.AdmissionRequest)
		})})
	if err := mgr.Add(server); err != nil {
		return fmt.Errorf("admission webhook: %w", err)
	}
	if err := mgr.AddReadyzCheck("admission-webhook", server.StartedChecker()); err != nil {
		return fmt.Errorf("admission webhook: %w", err)
	}
	return nil
}

// setupKeeper has the manager make its certificates.
func (o *Options) setupKeeper(mgr ctrl.Manager) (func(*tls.Config), error) {
	keeper, err := o.keeper()
	if err != nil {
		return nil, fmt.Errorf("admission webhook: %w", err)
	}
	if err := keeper.SetupWithManager(mgr); err != nil {
		return nil, fmt.Errorf("admission webhook: %w", err)
	}
	return keeper.Configure, nil
}
