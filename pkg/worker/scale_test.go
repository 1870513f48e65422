package worker

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/util/wake"
)

// Of more surplus Pods than the default allows per sync, each sync deletes as many as that, the
// next one goes on at once, and what is left in the end is what the spec wants.
func TestManySurplusPods(t *testing.T) {
	const pods, want = 603, 50
	objects := []client.Object{aJob(func(j *batchv1.Job) {
		j.Spec.Parallelism, j.Spec.Completions = ptr.To[int32](want), ptr.To[int32](2000)
	})}
	for i := range pods {
		objects = append(objects, aPod(fmt.Sprintf("pod-%04d", i)))
	}
	c := newCluster(t, Options{}, objects...)
	for left := pods - want; left > 0; {
		before := c.count("delete")
		after := c.mustSync().RequeueAfter
		deleted := c.count("delete") - before
		left -= deleted
		if deleted != min(500, left+deleted) || (after == wake.AtOnce) != (left > 0) {
			t.Fatalf("a sync deletes %d, %d are left, and the next one is after %v", deleted, left, after)
		}
	}
	c.mustSync()
	if s := c.job().Status; len(c.pods()) != want || s.Active != want || s.Failed != 0 || s.Succeeded != 0 {
		t.Errorf("%d Pods, status %+v", len(c.pods()), s)
	}
}

// However many Pods a Job has that is to stop, or has failed, a sync is over in time, and nothing
// says that they're gone before they are. Those whose deletion is refused, slowly, don't keep the
// others from being deleted.
func TestManyPodsToDelete(t *testing.T) {
	const pods = 500
	suspended := func(j *batchv1.Job) { j.Spec.Suspend = ptr.To(true) }
	for name, row := range map[string]struct {
		job     func(*batchv1.Job)
		refused int
	}{
		"fenced": {job: func(j *batchv1.Job) {
			of("hub")(j)
			j.Annotations = map[string]string{v1alpha1.AnnotationFenced: "2026-01-01T12:00:00Z"}
		}},
		"suspended": {job: suspended},
		"failed":    {job: func(j *batchv1.Job) { j.Status.Failed = *j.Spec.BackoffLimit + 1 }},
		"refused":   {suspended, 150},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{aJob(func(j *batchv1.Job) {
				j.Spec.Parallelism, j.Spec.Completions = ptr.To[int32](pods), ptr.To[int32](pods)
			}, row.job)}
			for i := range pods {
				objects = append(objects, aPod(fmt.Sprintf("pod-%04d", i)))
			}
			c := newCluster(t, Options{}, objects...)
			c.written = func() { c.clock.Step(100 * time.Millisecond) }
			c.refuse = func(verb string, obj client.Object) error {
				if verb == "delete" && obj.GetName() < fmt.Sprintf("pod-%04d", row.refused) {
					c.clock.Step(time.Second)
					return apierrors.NewTimeoutError("webhook", 1)
				}
				return nil
			}
			left := func() (n int) {
				for _, p := range c.pods() {
					if p.DeletionTimestamp == nil {
						n++
					}
				}
				return n
			}
			syncs := 0
			for before := pods + 1; left() > row.refused && syncs < 20; syncs++ {
				result, err := c.sync()
				if row.refused == 0 && err != nil {
					t.Fatal(err)
				}
				job := c.job()
				if n := left(); n >= before || int(job.Status.Active) != n || n > 0 && err == nil && result.RequeueAfter != wake.AtOnce {
					t.Fatalf("%d Pods are left of %d, status %+v, the next sync is after %v", n, before, job.Status, result.RequeueAfter)
				} else if finished(job) != "" && n > 0 {
					t.Fatalf("the Job has finished, with %d Pods", n)
				}
				before = left()
			}
			if n := left(); n > row.refused || syncs < 2 {
				t.Errorf("%d Pods are left after %d syncs", n, syncs)
			}
		})
	}
}
