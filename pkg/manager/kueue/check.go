package kueue

import (
	"fmt"
	"slices"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// check is an AdmissionCheck of Jobferry with what its parameters name.
type check struct {
	name string
	// workers are allowed, in order of preference. They're never nil.
	workers []string
	// problem says why the parameters can't be used, and then no worker is allowed; empty: they
	// can.
	problem string
}

// checkOf reads an AdmissionCheck's parameters. The config is nil if there is none.
func checkOf(ac *kueue.AdmissionCheck, config *kueue.MultiKueueConfig) check {
	c := check{name: ac.Name, workers: []string{}}
	switch ref := ac.Spec.Parameters; {
	case ref == nil:
		c.problem = "spec.parameters isn't set: let it name a MultiKueueConfig, which lists the WorkerClusters to use"
	case ref.APIGroup != kueue.SchemeGroupVersion.Group || ref.Kind != configKind:
		c.problem = fmt.Sprintf("spec.parameters is a %s of %s: it must be a %s of %s", ref.Kind, ref.APIGroup, configKind, kueue.SchemeGroupVersion.Group)
	case config == nil:
		c.problem = fmt.Sprintf("there is no %s %q, which spec.parameters names", configKind, ref.Name)
	default:
		c.workers = slices.Clone(config.Spec.Clusters)
	}
	return c
}

const configKind = "MultiKueueConfig"

// configName is the name of the MultiKueueConfig that an AdmissionCheck of Jobferry uses; empty:
// none.
func configName(ac *kueue.AdmissionCheck) string {
	ref := ac.Spec.Parameters
	if !isOurs(ac) || ref == nil || ref.APIGroup != kueue.SchemeGroupVersion.Group || ref.Kind != configKind {
		return ""
	}
	return ref.Name
}

func isOurs(ac *kueue.AdmissionCheck) bool {
	return ac.Spec.ControllerName == v1alpha1.ManagedByDispatcher
}

// allowedWorkers are those that all checks allow, in the order of the first. They're never nil,
// which would allow all.
func allowedWorkers(checks []check) []string {
	workers := []string{}
	for i, c := range checks {
		if i == 0 {
			workers = append(workers, c.workers...)
			continue
		}
		workers = slices.DeleteFunc(workers, func(w string) bool { return !slices.Contains(c.workers, w) })
	}
	return workers
}
