package kueue

import (
	"fmt"
	"slices"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// gate is a check of ours with what its parameters name.
type gate struct {
	// Check is the AdmissionCheck's name.
	Check string
	// Workers are allowed, in order of preference.
	Workers []string
	// Problem says why the parameters can't be used, and then no worker is allowed; empty: they
	// can.
	Problem string
}

// gateOf reads a check's parameters. The config is nil if there is none.
func gateOf(check *kueue.AdmissionCheck, config *kueue.MultiKueueConfig) gate {
	g := gate{Check: check.Name, Workers: []string{}}
	switch ref := check.Spec.Parameters; {
	case ref == nil:
		g.Problem = "spec.parameters isn't set: let it name a MultiKueueConfig, which lists the WorkerClusters to use"
	case ref.APIGroup != kueue.SchemeGroupVersion.Group || ref.Kind != configKind:
		g.Problem = fmt.Sprintf("spec.parameters is a %s of %s: it must be a %s of %s", ref.Kind, ref.APIGroup, configKind, kueue.SchemeGroupVersion.Group)
	case config == nil:
		g.Problem = fmt.Sprintf("there is no %s %q, which spec.parameters names", configKind, ref.Name)
	default:
		g.Workers = slices.Clone(config.Spec.Clusters)
	}
	return g
}

const configKind = "MultiKueueConfig"

// configName is the name of the MultiKueueConfig that a check of ours uses; empty: none.
func configName(check *kueue.AdmissionCheck) string {
	ref := check.Spec.Parameters
	if !isOurs(check) || ref == nil || ref.APIGroup != kueue.SchemeGroupVersion.Group || ref.Kind != configKind {
		return ""
	}
	return ref.Name
}

func isOurs(check *kueue.AdmissionCheck) bool {
	return check.Spec.ControllerName == v1alpha1.ManagedByDispatcher
}

// allowed are the workers that all gates let through, in the order of the first. It's never nil:
// without a gate nobody should ask.
func allowed(gates []gate) []string {
	workers := []string{}
	for i, g := range gates {
		if i == 0 {
			workers = append(workers, g.Workers...)
			continue
		}
		workers = slices.DeleteFunc(workers, func(w string) bool { return !slices.Contains(g.Workers, w) })
	}
	return workers
}
