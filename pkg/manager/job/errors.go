package job

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/clusters"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/util/text"
)

// handling says what to do about an error.
type handling string

const (
	// retry: try again, with backoff.
	retry handling = "Retry"
	// awaitEvent: a newer state is on its way, or the worker's probe will bring one, or memory comes
	// free: look again in a few seconds.
	awaitEvent handling = "AwaitEvent"
	// terminal: the API server will refuse the same write again. It is reported, and tried again
	// rarely; a worker that refuses is passed over (see refusalError).
	terminal handling = "Terminal"
	// pause: an API server has too much to do.
	pause handling = "Pause"
	// ignore: nothing is wrong.
	ignore handling = "Ignore"
)

// handlingOf says how to handle an error of apply.
func handlingOf(err error) handling {
	hub, ofHub := (*hubError)(nil), false
	ofHub = errors.As(err, &hub)
	switch {
	case errors.Is(err, errWorkerBusy):
		return ignore
	case apierrors.IsConflict(err), errors.Is(err, clusters.ErrNotConnected), errors.Is(err, errStale),
		errors.Is(err, errJustGone), errors.Is(err, errLeaving), errors.Is(err, errNoMemory), errors.Is(err, errUnshown):
		return awaitEvent
	case ofHub && isRefusal(hub.err):
		return terminal
	case apierrors.IsTooManyRequests(err):
		return pause
	default:
		return retry
	}
}

// errWorkerBusy: as many reconciles as may be are waiting for the worker. The limiter enqueues the
// Job when there is a place for it.
var errWorkerBusy = errors.New("as many reconciles as may be are waiting for the worker")

// errStale: the hub's cache is older than the hub; its next event enqueues the Job.
var errStale = errors.New("the hub's cache is stale")

// errJustGone: a mirror went after the snapshot was made; the event of its deletion enqueues the
// Job, and may tell that it had ended.
var errJustGone = errors.New("the mirror there has just gone")

// errLeaving: a mirror that the worker's cache doesn't show is being deleted.
var errLeaving = errors.New("the mirror there has to go first")

// errUnshown: what the worker has answered takes too much memory until its watch shows it.
var errUnshown = errors.New("its watch is to show first what it has answered, which takes too much memory")

// hubError is an error of the hub's API server about a write to the hub Job.
type hubError struct{ err error }

func (e *hubError) Error() string { return "hub: " + e.err.Error() }
func (e *hubError) Unwrap() error { return e.err }

// strippedError is a refusal of the hub after the fact: its admission has stripped a write. What is
// left of that comes as an event of the watch, which would have the Job looked at again at once.
type strippedError struct{ *apierrors.StatusError }

// workerError is an error of a worker's API server.
type workerError struct {
	worker string
	err    error
}

func (e *workerError) Error() string {
	return "worker " + e.worker + ": " + text.Clean(e.err.Error(), text.MaxMessage)
}
func (e *workerError) Unwrap() error { return e.err }

// refusalError: the worker can't take the Job, for a reason that trying again soon won't change.
// Another worker may.
type refusalError struct {
	worker string
	reason string // an event's reason
	text   string
	// blocker is what the refusal is about, and shows when it's over; nil: nothing that can be seen.
	blocker *blocker
	// outright: the worker has taken nothing of the Job.
	outright bool
}

func (e *refusalError) Error() string { return e.text }

// isRefusal reports whether an API server won't take an object, however often it's asked.
func isRefusal(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsRequestEntityTooLargeError(err)
}

// forbidden reports to a Job's user that an API server refuses what the Job needs. It's tried again
// all the same: permissions can be given.
func forbidden(err error) []dispatch.Report {
	message := ""
	var ofWorker *workerError
	var ofHub *hubError
	switch {
	case errors.As(err, &ofWorker) && apierrors.IsForbidden(ofWorker.err):
		message = "Worker " + ofWorker.worker + " forbids what this Job needs; the permissions of its kubeconfig " +
			"are to be those that docs/how-to/register.md lists: " + ofWorker.err.Error()
	case errors.As(err, &ofWorker) && isRefusal(ofWorker.err):
		message = "Worker " + ofWorker.worker + " refuses what the manager asks of this Job: " + ofWorker.err.Error()
	case errors.As(err, &ofHub) && isRefusal(ofHub.err):
		message = "The hub refuses the manager's write to this Job; its RBAC and its admission must allow the " +
			"manager's account what docs/reference/rbac.md lists: " + ofHub.err.Error()
	default:
		return nil
	}
	return []dispatch.Report{{Reason: v1alpha1.EventForbidden, Warning: true, Message: message}}
}
