package checker

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/usage"
)

// ranFor has a Pod run for some time, by its own times.
func (w *world) ranFor(d time.Duration) {
	e := w.run("open", 0)
	start := metav1.Unix(1000, 0)
	e.Pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: start}}
	w.see(e)
	e.Pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(start.Add(d))},
	}}}
	w.succeed(e)
}

func TestAccounts(t *testing.T) {
	for name, row := range map[string]struct {
		said usage.Seconds
		gone bool
		want []Rule
	}{
		"right":               {said: 100},
		"within a thousandth": {said: 100.09},
		"too much":            {said: 100.2, want: []Rule{Account}},
		"too little":          {said: 99.8, want: []Rule{Account}},
		"none":                {want: []Rule{Account}},
		"the Pod was deleted": {said: 50, gone: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.place("open")
			w.ranFor(100 * time.Second)
			w.hub(completed("0", 1))
			r := w.checker.records["job"]
			for _, p := range r.pods {
				p.gone = row.gone
			}
			r.hub.Annotations[v1alpha1.AnnotationUsage] = usage.Account{{Worker: "open", UID: "m", Seconds: row.said}}.String()
			w.checker.checkAccount(w.at, r)
			w.expect(row.want...)
		})
	}
}
