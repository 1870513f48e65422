package job

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
)

// What the cache says of a Job may be old. Before a second mirror is made, the hub is asked.
func TestIsWanted(t *testing.T) {
	cached := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: "train", UID: "first", Finalizers: []string{v1alpha1.FinalizerMirror},
		Annotations: map[string]string{v1alpha1.AnnotationCluster: "a"},
	}}
	for name, row := range map[string]struct {
		now  func(*batchv1.Job) // nil: it's gone
		want bool
	}{
		"as it was":        {now: func(*batchv1.Job) {}, want: true},
		"it has progress":  {now: func(j *batchv1.Job) { j.Status.Succeeded = 1 }, want: true},
		"gone":             {},
		"another one":      {now: func(j *batchv1.Job) { j.UID = "second" }},
		"being deleted":    {now: func(j *batchv1.Job) { j.DeletionTimestamp = ptr.To(metav1.Unix(5, 0)) }},
		"placed elsewhere": {now: func(j *batchv1.Job) { j.Annotations[v1alpha1.AnnotationCluster] = "b" }},
		"placed nowhere":   {now: func(j *batchv1.Job) { j.Annotations = nil }},
		"it has ended": {now: func(j *batchv1.Job) {
			j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			hub := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme)
			if row.now != nil {
				job := cached.DeepCopy()
				row.now(job)
				hub = hub.WithObjects(job)
			}
			r := &Reconciler{live: hub.Build()}
			s := &dispatch.Snapshot{Key: types.NamespacedName{Namespace: "team", Name: "train"}, Job: cached}
			if got, err := r.isWanted(t.Context(), s, "a"); err != nil || got != row.want {
				t.Errorf("%v, %v, want %v", got, err, row.want)
			}
		})
	}
}
