package chaos

import (
	"context"
	"errors"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientbatchv1 "k8s.io/client-go/kubernetes/typed/batch/v1"

	"github.com/jobferry/jobferry/e2e/chaos/fleet"
	"github.com/jobferry/jobferry/e2e/chaos/story"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
)

// users play the stories, straight at the hub's API server. While that is away, they try again.
type users struct {
	batch    clientbatchv1.BatchV1Interface
	recorder *recorder
	// writing does what writes to the hub, once that's let.
	writing func(do func())
	began   time.Time
}

// play plays one story.
func (u *users) play(ctx context.Context, s *story.Story) {
	if !u.wait(ctx, s.At-time.Since(u.began)) {
		return
	}
	u.insist(ctx, func(ctx context.Context) error { return u.create(ctx, s.Job, "") })
	u.recorder.submitted()
	for _, act := range s.Acts {
		if !u.wait(ctx, act.After) {
			return
		}
		u.recorder.acted(s, act.Deed)
		u.do(ctx, s, act)
	}
}

func (u *users) wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// insist tries until it succeeds.
func (u *users) insist(ctx context.Context, do func(context.Context) error) {
	for {
		var err error
		u.writing(func() {
			attempt, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()
			err = do(attempt)
		})
		if err == nil || !u.wait(ctx, 300*time.Millisecond) {
			return
		}
	}
}

// create creates a Job, unless an attempt whose answer was lost has. Former is the UID of one of
// that name that is to go first.
func (u *users) create(ctx context.Context, job *batchv1.Job, former types.UID) error {
	_, err := u.batch.Jobs(job.Namespace).Create(ctx, job, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	there, err := u.batch.Jobs(job.Namespace).Get(ctx, job.Name, metav1.GetOptions{})
	if err == nil && there.UID == former {
		return errors.New("the former one is still there")
	}
	return err
}

func (u *users) do(ctx context.Context, s *story.Story, act story.Act) {
	switch act.Deed {
	case story.Suspend, story.Resume:
		u.edit(ctx, s, func(j *batchv1.Job) { j.Spec.Suspend = new(act.Deed == story.Suspend) })
	case story.Scale:
		u.edit(ctx, s, func(j *batchv1.Job) { j.Spec.Parallelism = &act.Value })
	case story.ScaleElastic:
		u.edit(ctx, s, func(j *batchv1.Job) { j.Spec.Parallelism, j.Spec.Completions = &act.Value, &act.Value })
	case story.Reselect:
		u.edit(ctx, s, leaveWorker)
	case story.Delete:
		u.remove(ctx, s, act)
	case story.Replace:
		former := u.remove(ctx, s, act)
		u.insist(ctx, func(ctx context.Context) error { return u.create(ctx, s.Job, former) })
	}
}

// leaveWorker makes a Job, or its shard in the first of its workers, move to any other worker.
func leaveWorker(j *batchv1.Job) {
	if workers := shards.WorkersOf(j); len(workers) > 0 {
		metav1.SetMetaDataAnnotation(&j.ObjectMeta, v1alpha1.AnnotationClusterSelector, fleet.LabelName+"!="+workers[0])
	}
}

// edit changes a Job that hasn't ended.
func (u *users) edit(ctx context.Context, s *story.Story, change func(*batchv1.Job)) {
	u.insist(ctx, func(ctx context.Context) error {
		job, err := u.batch.Jobs(s.Job.Namespace).Get(ctx, s.Name, metav1.GetOptions{})
		if err != nil {
			return ignoreNotFound(err)
		}
		if condition, _ := story.Outcome(job); condition != "" {
			return nil
		}
		change(job)
		_, err = u.batch.Jobs(job.Namespace).Update(ctx, job, metav1.UpdateOptions{})
		return ignoreNotFound(err)
	})
}

// remove deletes a Job, and returns its UID.
func (u *users) remove(ctx context.Context, s *story.Story, act story.Act) (uid types.UID) {
	propagation := act.Propagation()
	u.insist(ctx, func(ctx context.Context) error {
		job, err := u.batch.Jobs(s.Job.Namespace).Get(ctx, s.Name, metav1.GetOptions{})
		if err != nil {
			return ignoreNotFound(err)
		}
		uid = job.UID
		return ignoreNotFound(u.batch.Jobs(s.Job.Namespace).Delete(ctx, s.Name, metav1.DeleteOptions{
			PropagationPolicy: &propagation, Preconditions: &metav1.Preconditions{UID: &uid},
		}))
	})
	return uid
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
