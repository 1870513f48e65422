package worker

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/util/places"
)

// jobMetadata reads the metadata of Jobs from the API server, which may have 1.5 MB. Any Pod can
// have that of a Job read: few are read at a time, and of those of a namespace one.
type jobMetadata struct {
	live   client.Reader
	places *places.Places
}

func newJobMetadata(live client.Reader) jobMetadata { return jobMetadata{live, places.New(2, 1)} }

func (r jobMetadata) get(ctx context.Context, key types.NamespacedName) (*metav1.PartialObjectMetadata, error) {
	release, err := r.places.Acquire(ctx, key.Namespace)
	if err != nil {
		return nil, err
	}
	defer release()
	job := &metav1.PartialObjectMetadata{}
	job.SetGroupVersionKind(batchv1.SchemeGroupVersion.WithKind("Job"))
	return job, r.live.Get(ctx, key, job)
}
