package subresources

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
)

// finder finds the mirrors of a hub Job.
type finder struct {
	// readJob reads a hub Job without its spec's larger parts.
	readJob func(context.Context, types.NamespacedName) (*batchv1.Job, error)
	origin  v1alpha1.Origin
	timeout time.Duration
	links   *links
}

// location is a mirror that is proven to be the hub Job's, and the connection to its worker. It's
// held until the request ends, so it has only what is used of the mirror.
type location struct {
	*link
	job metav1.ObjectMeta // namespace, name, and the mirror's UID
	// selector is that of the Pods. unselectable: why there is none.
	selector     string
	unselectable error
	timeout      time.Duration // of one request
	chunks       int           // of Pods that may still be read
	bytes        int64         // of these
}

// placed is a hub Job, and those of its workers that a request is about.
type placed struct {
	*finder
	job     *batchv1.Job
	workers []string
}

// find returns a hub Job and its workers, or an API status error that says why there is none.
func (f *finder) find(ctx context.Context, req *request) (*placed, error) {
	job, err := f.readJob(ctx, req.key)
	if err != nil {
		return nil, fromHub(fmt.Sprintf("Job %q", req.key), err)
	}
	if req.ofNode && job.UID != req.jobUID {
		return nil, notFound("Job %q is another than the one of that Pod", job.Name)
	}
	workers, err := placement(job)
	if err != nil {
		return nil, err
	}
	if only := req.query.Get(paramWorker); only != "" {
		if !slices.Contains(workers, only) {
			return nil, notFound("worker: Job %q isn't placed on worker %q, but on %s", job.Name, shorten(only), strings.Join(workers, ", "))
		}
		workers = []string{only}
	}
	return &placed{f, job, workers}, nil
}

// at returns the location of the Job's mirror in a worker, or an API status error that says why
// there is none.
func (p *placed) at(ctx context.Context, worker string) (at *location, err error) {
	err = p.mirror(ctx, worker, func(l *link, found *batchv1.Job) error {
		at = &location{link: l, job: metav1.ObjectMeta{Namespace: p.job.Namespace, Name: p.job.Name, UID: found.UID}, timeout: p.timeout}
		at.selector, at.unselectable = selectorOf(found)
		return nil
	})
	return at, err
}

// mirror calls do with the Job's mirror in a worker, or returns an API status error that says why
// there is none.
func (p *placed) mirror(ctx context.Context, worker string, do func(*link, *batchv1.Job) error) error {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	l, err := p.links.to(ctx, worker)
	if err != nil {
		return err
	}
	found, done, err := read(ctx, l, p.job.Namespace, l.patience(p.timeout), func(ctx context.Context) (*batchv1.Job, error) {
		return l.batch.Jobs(p.job.Namespace).Get(ctx, p.job.Name, metav1.GetOptions{})
	})
	defer done()
	l.silence.note(err)
	if apierrors.IsNotFound(err) {
		return noMirror(p.job, worker)
	}
	if err != nil {
		return fromWorker(worker, "reading the Job", err)
	}
	// maxUIDBytes bounds the mirror's UID, which API servers make of 36.
	const maxUIDBytes = 64
	if mirror.Owns(p.origin, p.job.UID, found) != mirror.Ours || len(found.UID) > maxUIDBytes {
		return noMirror(p.job, worker)
	}
	return do(l, found)
}

// fromHub turns an error of a request to the hub into one for the user.
func fromHub(what string, err error) error {
	if apierrors.IsNotFound(err) {
		return err
	}
	return apierrors.NewInternalError(fmt.Errorf("the hub doesn't answer for %s: %s", what, clean(err.Error())))
}

// placement returns the workers of a hub Job, or an error that says why there is none.
func placement(job *batchv1.Job) (workers []string, err error) {
	workers = shards.WorkersOf(job)
	switch {
	case !mirror.Managed(job):
		return nil, statusError(http.StatusBadRequest, metav1.StatusReasonBadRequest,
			"Job %q isn't Jobferry's: its spec.managedBy is %q, so its Pods are in this cluster; use kubectl logs and kubectl get pods",
			job.Name, ptr.Deref(job.Spec.ManagedBy, batchv1.JobControllerName))
	case len(workers) > 0:
		return workers, nil
	case mirror.Finished(job):
		return nil, notFound("Job %q has ended without ever having been placed on a worker: it had no Pods", job.Name)
	case mirror.Suspended(job):
		return nil, notYet("Job %q is suspended, and isn't placed on a worker before it's resumed: it has no Pods yet", job.Name)
	default:
		return nil, notYet("Job %q isn't placed on a worker yet: kubectl jobferry why %s -n %s says what it waits for", job.Name, job.Name, job.Namespace)
	}
}

// noMirror returns an error that says why the Job's worker has no mirror of it.
func noMirror(job *batchv1.Job, worker string) error {
	switch from := hubstate.Get(job, hubstate.MovedFrom); {
	case mirror.Finished(job):
		return notFound("Job %q has ended, and worker %q has no copy of it any more, nor its Pods", job.Name, worker)
	case from != "":
		return notYet("Job %q is being moved from worker %q to %q, and hasn't started there yet: try again", job.Name, from, worker)
	default:
		return notYet("Job %q is placed on worker %q, and hasn't started there yet: try again, or see kubectl jobferry events %s -n %s",
			job.Name, worker, job.Name, job.Namespace)
	}
}

// mirror responds with the mirror as it is in the worker.
func (h *handler) mirror(w *responseWriter, r *http.Request, req *request) error {
	p, err := h.find.find(r.Context(), req)
	if err != nil {
		return err
	}
	if len(p.workers) > 1 {
		return apierrors.NewBadRequest(fmt.Sprintf("worker: Job %q has a mirror in each of %s; name one of them",
			req.key.Name, strings.Join(p.workers, ", ")))
	}
	return p.mirror(r.Context(), p.workers[0], func(l *link, found *batchv1.Job) error {
		defer w.within(p.timeout)()
		found.TypeMeta = metav1.TypeMeta{Kind: "Job", APIVersion: batchv1.SchemeGroupVersion.String()}
		found.ManagedFields = nil
		w.Header().Set(WorkerHeader, l.worker)
		writeJSON(w, http.StatusOK, found)
		return nil
	})
}
