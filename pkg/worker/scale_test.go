package worker

import (
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
