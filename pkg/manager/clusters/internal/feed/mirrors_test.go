package feed

import (
	"fmt"
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/jobferry/jobferry/pkg/manager/packed"
)

func TestEventsOfMirrors(t *testing.T) {
	version := 0
	pack := func(deleted *metav1.Time, conditions ...batchv1.JobCondition) *packed.Job {
		version++
		mirror, err := packed.New(&batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "j", DeletionTimestamp: deleted, ResourceVersion: fmt.Sprint(version)},
			Status:     batchv1.JobStatus{Conditions: conditions},
		})
		if err != nil {
			t.Fatal(err)
		}
		return mirror
	}
	done := batchv1.JobCondition{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}
	mirror, ended := pack(nil), pack(nil, done)
	announced := pack(nil, batchv1.JobCondition{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue})
	var told []string
	var kept *mirrorStore
	kept = newMirrorStore(mirrorCallbacks{changed: func(c MirrorChange) {
		told = append(told, fmt.Sprint(c.Key, " ", c.Exists, " ", c.Last != nil, " ", c.IsProgress != nil && c.IsProgress()))
		if held := kept.get(c.Key); (held != nil) != c.Exists {
			t.Errorf("event %d comes before the store has it", len(told))
		}
	}, controllerSeen: func() { told = append(told, "controller") }})
	to := mirrorsTo(kept)
	for i, step := range []struct {
		of   cache.DeltaType
		job  *packed.Job // nil: none is listed
		want []string
	}{
		{cache.Added, mirror, []string{"team/j true false false"}},
		{cache.Updated, mirror, nil}, // nothing has changed
		{cache.Updated, pack(nil), []string{"team/j true false true"}},
		{cache.Deleted, pack(nil), []string{"team/j false true false"}},
		{cache.ReplacedAll, pack(nil), []string{"team/j true false false"}},
		{cache.Deleted, pack(&metav1.Time{}), []string{"team/j false false false"}},
		{cache.Added, mirror, []string{"team/j true false false"}},
		{cache.Updated, announced, []string{"team/j true false true"}},
		{cache.Updated, ended, []string{"controller", "team/j true false false"}},
		{cache.ReplacedAll, ended, nil},
		{cache.ReplacedAll, nil, []string{"team/j false true false"}},
		{cache.ReplacedAll, nil, nil},
	} {
		delta := cache.Delta{Type: step.of, Object: step.job}
		if step.of == cache.ReplacedAll {
			listed := cache.ReplacedAllInfo{}
			if step.job != nil {
				listed.Objects = []any{step.job}
			}
			delta.Object = listed
		}
		told = nil
		to.pass(&delta)
		if !slices.Equal(told, step.want) {
			t.Errorf("step %d: told %q, want %q", i, told, step.want)
		}
	}
}
