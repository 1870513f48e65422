package job

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/clusters"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
)

// handling says what to do about an error.
type handling string

const (
	// retry: try again, with back-off.
	retry handling = "Retry"
	// awaitEvent: a newer state is on its way, or the worker's probe will tell.
	awaitEvent handling = "AwaitEvent"
	// ignore: nothing is wrong.
	ignore handling = "Ignore"
)

// errParked: the worker's lane is full; the Job comes back when there's room.
var errParked = errors.New("the worker's lane is full")

// errBehind: the hub's cache is; its next event brings the Job back.
var errBehind = errors.New("the hub's cache is behind")

// workerError is an error of a worker's API server.
type workerError struct {
	worker string
	err    error
}

func (e *workerError) Error() string { return fmt.Sprintf("worker %s: %v", e.worker, e.err) }
func (e *workerError) Unwrap() error { return e.err }

// refusalError: the worker can't take the Job, for a reason that trying again soon won't change.
// Another worker may.
type refusalError struct {
	worker string
	reason string // an event's reason
	text   string
}

func (e *refusalError) Error() string { return e.text }

// isRefusal says whether an API server won't take an object, however often it's asked.
func isRefusal(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsRequestEntityTooLargeError(err)
}

// forbidden tells a Job that its worker refuses to the hub what is needed for it. It's tried again
// all the same: permissions can be given.
func forbidden(err error) []dispatch.Report {
	var failed *workerError
	if !errors.As(err, &failed) || !apierrors.IsForbidden(failed.err) {
		return nil
	}
	return []dispatch.Report{{Reason: v1alpha1.EventForbidden, Warning: true, Message: "Worker " + failed.worker +
		" forbids what this Job needs; the permissions of its kubeconfig are to be those that docs/register.md lists: " + failed.err.Error()}}
}

// classify says how to handle an error of apply.
func classify(err error) handling {
	switch {
	case errors.Is(err, errParked):
		return ignore
	case apierrors.IsConflict(err), errors.Is(err, clusters.ErrNotConnected), errors.Is(err, errBehind):
		return awaitEvent
	default:
		return retry
	}
}
