package plugin

import (
	"context"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/plugin/access"
)

// logStart waits for what is followed to start.
type logStart struct {
	subresources *access.Subresources
	// follow: without it, nothing is waited for.
	follow bool
	// timeout ends that; zero: there is none.
	timeout time.Duration
	// waiting reports why it waits.
	waiting func(string)
	// job reads the Job; nil: the user may not, or it's gone.
	job func(context.Context) *batchv1.Job
}

// unfinished reports whether the Job may still get Pods.
func (s *logStart) unfinished(ctx context.Context) bool {
	job := s.job(ctx)
	return job != nil && !mirror.Finished(job)
}

func (c *cli) startOf(subresources *access.Subresources, f *logsFlags) *logStart {
	return &logStart{
		subresources: subresources, follow: f.options.Follow, timeout: f.startTimeout,
		waiting: c.sayNew("waiting: "),
		job: func(ctx context.Context) *batchv1.Job {
			hub, err := c.hubClient()
			if err != nil {
				return nil
			}
			job, _ := c.jobNamed(ctx, hub, subresources.Job) // nil with an error
			return job
		},
	}
}

// slowestPoll is how often it's asked for what doesn't start for long.
const slowestPoll = 5 * time.Second

// await calls try until that succeeds, or fails for another reason than that it's too early.
func (s *logStart) await(ctx context.Context, isEarly func(context.Context, error) bool, try func() error) error {
	limited, cancel := ctx, context.CancelFunc(func() {})
	if s.timeout > 0 {
		limited, cancel = context.WithTimeout(ctx, s.timeout)
	}
	defer cancel()
	var last error
	poll := wait.Backoff{Duration: pollInterval, Factor: 1.5, Cap: slowestPoll, Steps: math.MaxInt32}
	err := poll.DelayFunc().Until(limited, true, true, func(ctx context.Context) (bool, error) {
		last = try()
		if last == nil || !s.follow || !isEarly(ctx, last) {
			return true, last
		}
		s.waiting(last.Error())
		return false, nil
	})
	switch {
	case !canceled(err):
		return err
	case ctx.Err() != nil:
		return nil // the user ended it
	default:
		return last
	}
}

// startsLater reports whether a log can't be read yet: the Job has no Pod, or the Pod's container
// waits.
func startsLater(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsBadRequest(err) && strings.Contains(err.Error(), "is waiting to start")
}

// logStream is the log of one container, not yet opened.
type logStream struct {
	start   *logStart
	choice  access.PodChoice
	options *corev1.PodLogOptions
	// prefix begins each line, where lines have one.
	prefix string
}

// open opens the log; nil: the user ended that.
func (s logStream) open(ctx context.Context) (stream io.ReadCloser, err error) {
	err = s.start.await(ctx, s.isEarly, func() (err error) {
		// The log outlives the wait, so it gets the outer context.
		stream, err = s.start.subresources.Log(ctx, s.choice, s.options)
		return err
	})
	return stream, err
}

// isEarly reports whether the log can be read later. A mirror that was just made has no Pod yet.
func (s logStream) isEarly(ctx context.Context, err error) bool {
	return startsLater(err) || s.choice.Pod == "" && apierrors.IsNotFound(err) && !access.Advised(err) && s.start.unfinished(ctx)
}

// copyTo writes the log until it ends. An interruption by the user is no error.
func (s logStream) copyTo(ctx context.Context, out io.Writer) error {
	stream, err := s.open(ctx)
	if err != nil || stream == nil {
		return err
	}
	defer stream.Close()
	_, err = io.Copy(out, stream)
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("the log was interrupted: %w", err)
	}
	return nil
}
