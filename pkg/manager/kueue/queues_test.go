package kueue

import (
	"context"
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// flooded is a cache with very many Workloads of one owner: each list of them takes some time.
type flooded struct {
	uncached

	lists int
}

func (f *flooded) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	f.lists++
	into.(*kueue.WorkloadList).Items = make([]kueue.Workload, maxOfOwner)
	return nil
}

// However many Workloads a tenant makes that name his JobSet as their owner, they're looked for
// once for all of its Jobs that are looked at together.
func TestWorkloadsOfAnOwnerAreFoundOnce(t *testing.T) {
	cache := &flooded{}
	q := New(DefaultOptions())
	q.session.Store(&session{objects: cache})
	admissionOf := q.Admissions(t.Context())
	for i := range 1000 {
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: fmt.Sprint("job-", i), OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "jobset.x-k8s.io/v1alpha2", Kind: "JobSet", Name: "set", UID: types.UID("set"), Controller: ptr.To(true),
		}}}}
		if a := admissionOf(job); !a.Queued {
			t.Fatalf("%s has no Workload", job.Name)
		}
	}
	if cache.lists > 2 {
		t.Errorf("the Workloads are listed %d times", cache.lists)
	}
}
