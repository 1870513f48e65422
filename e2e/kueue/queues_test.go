package kueue_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/jobferry/jobferry/e2e/kueue/kueuetest"
)

// spotTaint is on the nodes of the flavor "spot".
var spotTaint = []corev1.Taint{{Key: "spot", Effect: corev1.TaintEffectNoSchedule}}

// queues are what one test has of Kueue's cluster-scoped objects: their names are the test's
// namespace, and a suffix.
type queues struct{ f *kueuetest.Fixture }

// parallel prepares a namespace with flavors for a test that runs in parallel with others.
func parallel(t *testing.T) (*kueuetest.Fixture, queues) {
	t.Helper()
	t.Parallel()
	f := kueuetest.For(t)
	q := queues{f}
	q.flavors()
	return f, q
}

// apply applies manifests in which NS stands for the test's namespace.
func (q queues) apply(manifests string) {
	q.f.Apply(q.f.Hub, q.f.NS, strings.ReplaceAll(manifests, "NS", q.f.NS))
}

// flavors makes the flavor NS-plain, for any node, and NS-spot, for tainted ones.
func (q queues) flavors() {
	q.apply(`
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: NS-plain}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: NS-spot}
spec:
  nodeLabels: {capacity: spot}
  tolerations: [{key: spot, operator: Exists, effect: NoSchedule}]
`)
}

// queue makes a ClusterQueue NS-<name> in the cohort NS with quota for CPUs of one flavor, and a
// LocalQueue <name> that leads there. Checks are names of AdmissionChecks.
func (q queues) queue(name, flavor string, cpus int, checks ...string) {
	strategy := ""
	for i, check := range checks {
		if i == 0 {
			strategy = "  admissionChecksStrategy:\n    admissionChecks:\n"
		}
		strategy += "    - name: " + check + "\n"
	}
	q.apply(fmt.Sprintf(`
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: NS-%[1]s}
spec:
  cohortName: NS
  namespaceSelector: {}
  preemption: {withinClusterQueue: LowerPriority, reclaimWithinCohort: Any}
%[4]s  resourceGroups:
  - coveredResources: [cpu]
    flavors:
    - name: NS-%[2]s
      resources: [{name: cpu, nominalQuota: %[3]d}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: %[1]s}
spec: {clusterQueue: NS-%[1]s}
`, name, flavor, cpus, strategy))
}

// check makes an AdmissionCheck NS-<name> of Jobferry that allows these workers, in order of
// preference.
func (q queues) check(name string, workers ...string) {
	q.apply(fmt.Sprintf(`
apiVersion: kueue.x-k8s.io/v1beta2
kind: MultiKueueConfig
metadata: {name: NS-%[1]s}
spec: {clusters: [%[2]s]}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: AdmissionCheck
metadata: {name: NS-%[1]s}
spec:
  controllerName: jobferry.dev/dispatcher
  parameters: {apiGroup: kueue.x-k8s.io, kind: MultiKueueConfig, name: NS-%[1]s}
`, name, strings.Join(workers, ", ")))
}

// priorities makes the priority classes NS-low and NS-high.
func (q queues) priorities() {
	q.apply(`
apiVersion: kueue.x-k8s.io/v1beta2
kind: WorkloadPriorityClass
metadata: {name: NS-low}
value: 10
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: WorkloadPriorityClass
metadata: {name: NS-high}
value: 1000
`)
}
