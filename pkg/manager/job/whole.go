package job

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// wholeJobs reads Jobs from the hub that its cache holds without their Pod templates, a few at a
// time: each can have more than a megabyte.
type wholeJobs struct {
	live   client.Reader
	places chan struct{}
}

const wholeAtATime = 8

func newWholeJobs(live client.Reader) wholeJobs {
	return wholeJobs{live: live, places: make(chan struct{}, wholeAtATime)}
}

// read returns the Job of a snapshot with its template, if a decision may need that.
func (w wholeJobs) read(ctx context.Context, s *dispatch.Snapshot) (*batchv1.Job, error) {
	if !mirror.Light(s.Job) || !needsTemplate(s) {
		return s.Job, nil
	}
	select {
	case w.places <- struct{}{}:
		defer func() { <-w.places }()
	case <-ctx.Done():
		return s.Job, ctx.Err()
	}
	var job batchv1.Job
	err := w.live.Get(ctx, s.Key, &job)
	switch {
	case apierrors.IsNotFound(err) || err == nil && job.UID != s.Job.UID:
		return s.Job, errStale
	case err != nil:
		return s.Job, err
	}
	job.ManagedFields = nil
	return &job, nil
}

// needsTemplate reports whether a Job has or gets a mirror. One that has ended or is being deleted
// needs nothing more, and a suspended one nothing until it's placed or resumed.
func needsTemplate(s *dispatch.Snapshot) bool {
	switch {
	case !mirror.Managed(s.Job) || mirror.Finished(s.Job) || s.Job.DeletionTimestamp != nil:
		return false
	case s.Job.Annotations[v1alpha1.AnnotationCluster] != "":
		return true
	default:
		return s.NotDispatched == "" && s.Admission.WantsCapacity(s.Job)
	}
}
