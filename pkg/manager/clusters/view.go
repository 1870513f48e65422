package clusters

import (
	"maps"
	"reflect"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// Settings are what the hub says of a worker.
type Settings struct {
	// Labels of the WorkerCluster.
	Labels map[string]string
	// Spec of the WorkerCluster.
	Spec v1alpha1.WorkerClusterSpec
	// Removing: the registration Secret is being deleted, and Spec.RemovalPolicy says what is to be
	// done.
	Removing bool
}

func (s Settings) equal(other Settings) bool {
	return s.Removing == other.Removing && maps.Equal(s.Labels, other.Labels) && reflect.DeepEqual(s.Spec, other.Spec)
}

// View is a worker at one moment. It's shared: callers must not change it.
type View struct {
	Health
	Settings
	// Capacity says whether the worker's Ledger shows what the worker has.
	Capacity CapacityState
}

// Schedulable says whether new Jobs may be placed on the worker, and if not, why: a reason of the
// Schedulable condition.
func (v View) Schedulable() (reason string, ok bool) {
	for _, rule := range schedulableRules {
		if rule.violated(v) {
			return rule.reason, false
		}
	}
	return v1alpha1.ReasonSchedulable, true
}

// schedulableRules are checked in order: what lasts comes first.
var schedulableRules = []struct {
	reason   string
	violated func(View) bool
}{
	{v1alpha1.ReasonRemoving, func(v View) bool { return v.Removing }},
	{v1alpha1.ReasonDraining, func(v View) bool { return v.Spec.Drain }},
	{v1alpha1.ReasonCordoned, func(v View) bool { return v.Spec.Cordoned }},
	{v1alpha1.ReasonNotReady, func(v View) bool { return v.State != Ready }},
}
