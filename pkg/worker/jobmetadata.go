package worker

import (
	"context"
	"errors"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/util/turns"
)

// jobMetadata reads the metadata of Jobs from the API server, which may have 1.5 MB. Any Pod can
// have that of a Job read. One is read at a time. Namespaces take turns, and a reconcile whose turn
// it isn't ends.
type jobMetadata struct {
	live client.Reader
	turn *turns.Turn
}

// errNotItsTurn ends a reconcile whose object is enqueued when it's its turn to read.
var errNotItsTurn = errors.New("the metadata of another Job is read")

// get reads that of a Job for an object that is being reconciled.
func (r jobMetadata) get(ctx context.Context, reconciled, key types.NamespacedName) (*metav1.PartialObjectMetadata, error) {
	if !r.turn.Take(reconciled) {
		return nil, errNotItsTurn
	}
	defer r.turn.Ended(reconciled)
	job := &metav1.PartialObjectMetadata{}
	job.SetGroupVersionKind(batchv1.SchemeGroupVersion.WithKind("Job"))
	return job, r.live.Get(ctx, key, job)
}
