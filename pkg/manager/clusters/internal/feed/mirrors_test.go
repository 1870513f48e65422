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
	pack := func(deleted *metav1.Time, conditions ...batchv1.JobCondition) any {
		mirror, err := packed.Pack(&batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "j", DeletionTimestamp: deleted}, Status: batchv1.JobStatus{Conditions: conditions},
		})
		if err != nil {
			t.Fatal(err)
		}
		return mirror
	}
	mirror, ended := pack(nil), pack(nil, batchv1.JobCondition{Type: batchv1.JobComplete, Status: corev1.ConditionTrue})
	var told []string
	var progress []bool
	handler := mirrorHandler(mirrorCallbacks{changed: func(c MirrorChange) {
		told = append(told, fmt.Sprint(c.Key, " ", c.Exists, " ", c.Last != nil))
		progress = append(progress, c.IsProgress != nil && c.IsProgress())
	}})
	handler.OnAdd(mirror, true)
	handler.OnUpdate(mirror, mirror)
	handler.OnDelete(mirror)
	handler.OnDelete(pack(&metav1.Time{}))
	handler.OnUpdate(mirror, ended)
	handler.OnUpdate(mirror, pack(nil, batchv1.JobCondition{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue}))
	handler.OnDelete(ended)
	handler.OnDelete(cache.DeletedFinalStateUnknown{Key: "team/j", Obj: ended})
	if want := []string{
		"team/j true false", "team/j true false", "team/j false true", "team/j false false", "team/j true false", "team/j true false", "team/j false true", "team/j false true",
	}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
	if want := []bool{false, true, false, false, false, true, false, false}; !slices.Equal(progress, want) {
		t.Errorf("progress: %v, want %v", progress, want)
	}
}
