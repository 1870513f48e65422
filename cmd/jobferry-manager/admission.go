package main

import (
	"github.com/spf13/pflag"

	"github.com/jobferry/jobferry/pkg/manager/admission"
)

func addAdmission(set *pflag.FlagSet, o *admission.Options) {
	set.BoolVar(&o.Enabled, "admission-webhook", o.Enabled,
		"serve the webhook that sets managedBy on new Jobs of namespaces with the label jobferry.dev/dispatch=enabled; for hubs before 1.36")
	set.StringVar(&o.BindAddress, "admission-webhook-bind-address", o.BindAddress, "address of the admission webhook")
	set.StringVar(&o.Service, "admission-webhook-service", o.Service, "Service that the hub's API server calls the webhook by")
	set.StringVar(&o.CertDir, "admission-webhook-cert-dir", o.CertDir,
		"folder with tls.crt and tls.key of the webhook; default: certificates that the manager makes and injects")
	set.DurationVar(&o.CertLifetime, "admission-webhook-cert-lifetime", o.CertLifetime,
		"lifetime of certificates that the manager makes; they're replaced in its last third")
}
