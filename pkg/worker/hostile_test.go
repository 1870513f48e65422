package worker

import (
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// A tenant has many Jobs with selectors of as many values as fit into them: neither a Pod of his
// without a controller nor a sync costs by their number.
func TestSelectorsOfATenantAreReadOnce(t *testing.T) {
	c := newCluster(t, Options{})
	values := make([]string, 20_000)
	for i := range values {
		values[i] = fmt.Sprintf("%x", i)
	}
	for i := range 20 {
		c.jobs.memory.of(aJob(func(j *batchv1.Job) {
			j.Name, j.UID = fmt.Sprint(i), types.UID(fmt.Sprint(i))
			j.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "key", Operator: metav1.LabelSelectorOpNotIn, Values: values}}
		}))
	}
	h, q := podEvents{memory: c.jobs.memory, options: c.jobs.options, metrics: testMetrics(t)}, &delays{}
	bare := aPod("p", func(p *corev1.Pod) {
		p.OwnerReferences, p.Labels = nil, map[string]string{"job": "job-uid", "key": "1"}
	})
	if n := testing.AllocsPerRun(10, func() { h.Create(t.Context(), event.CreateEvent{Object: bare}, q) }); n > 20 {
		t.Errorf("%v allocations for an event of a Pod", n)
	}
	if len(q.added) > 0 {
		t.Errorf("queued %v", q.added)
	}
}
