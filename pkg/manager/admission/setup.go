package admission

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// The manager writes the caBundle of the configuration. The rights for registrations include the
// Secret.
//
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingwebhookconfigurations,resourceNames=jobferry-dispatch,verbs=list;watch;patch

// Setup adds the webhook to the manager, if it's enabled. Every replica serves it, and /readyz
// includes it.
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
		rotator, err := options.rotator()
		if err != nil {
			return fmt.Errorf("admission webhook: %w", err)
		}
		if err := rotator.SetupWithManager(mgr); err != nil {
			return fmt.Errorf("admission webhook: %w", err)
		}
		serve.TLSOpts = append(serve.TLSOpts, rotator.Configure)
	}
	server := webhook.NewServer(serve)
	server.Register(path, limited(&admission.Webhook{Handler: admission.HandlerFunc(
		func(_ context.Context, request admission.Request) admission.Response {
			return review(&request.AdmissionRequest)
		})}))
	if err := mgr.Add(server); err != nil {
		return fmt.Errorf("admission webhook: %w", err)
	}
	if err := mgr.AddReadyzCheck("admission-webhook", server.StartedChecker()); err != nil {
		return fmt.Errorf("admission webhook: %w", err)
	}
	return nil
}
