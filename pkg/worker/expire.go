package worker

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/jobferry/jobferry/pkg/util/wake"
	"github.com/jobferry/jobferry/pkg/worker/plan"
)

// expire deletes finished Jobs ttlSecondsAfterFinished after their end (KEP-592).
type expire struct {
	client  client.Client
	metrics *metrics
	options Options
	clock   clock.PassiveClock
}

func (x *expire) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var job batchv1.Job
	if err := x.client.Get(ctx, req.NamespacedName, &job, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	left, due := x.left(&job)
	if !due || left > 0 {
		return reconcile.Result{RequeueAfter: left}, nil
	}
	// The cache may be behind: the TTL may have been raised, or the Job created again, a moment ago.
	// The API server compares the versions, so that no Job has to be read, which may be large.
	isCached := client.Preconditions{UID: &job.UID, ResourceVersion: &job.ResourceVersion}
	target := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace, Name: job.Name}}
	switch err := x.client.Delete(ctx, target, isCached, client.PropagationPolicy(metav1.DeletePropagationForeground)); {
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: wake.In(x.options.SyncBatchPeriod)}, nil
	case client.IgnoreNotFound(err) != nil:
		return reconcile.Result{}, fmt.Errorf("delete expired Job: %w", short{err})
	}
	x.metrics.jobExpired(-left)
	return reconcile.Result{}, nil
}

// left is how long the Job is kept; due is false if it isn't deleted at all.
func (x *expire) left(job *batchv1.Job) (left time.Duration, due bool) {
	end := plan.Finished(job)
	if job.DeletionTimestamp != nil || job.Spec.TTLSecondsAfterFinished == nil || end == nil || !x.options.expires(job) {
		return 0, false
	}
	ttl := time.Duration(*job.Spec.TTLSecondsAfterFinished) * time.Second
	return end.LastTransitionTime.Add(ttl).Sub(x.clock.Now()), true
}
