package dispatchedjobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/go-logr/logr"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	batchclient "k8s.io/client-go/kubernetes/typed/batch/v1"

	"github.com/jobferry/jobferry/pkg/jobview"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/util/places"
)

var resource = schema.GroupResource{Group: "subresources.jobferry.dev", Resource: "dispatchedjobs"}

const (
	// pageSize is how many Jobs, or events, are read at a time.
	pageSize = 500
	// maxReads is how many answers of the hub are held at a time, and maxReadsOfOne those for one
	// namespace.
	maxReads, maxReadsOfOne = 8, 2
	// reasonsWait is how long a request waits for the reasons, which the first one has read.
	reasonsWait = 5 * time.Second
	// writeTimeout is for one write to a client that doesn't read.
	writeTimeout = 30 * time.Second
)

// Server answers requests that are authorized. Its caller sets the headers, and writes errors,
// unless the response has begun.
type Server struct {
	hub     batchclient.JobsGetter
	turns   *places.Places
	reasons *Reasons
	workers jobview.Workers
	timeout time.Duration // of a request to the hub
}

// New returns a Server, whose hub is one of NewClient. Its Reasons must be run.
func New(hub kubernetes.Interface, workers jobview.Workers, timeout time.Duration, log logr.Logger) *Server {
	return &Server{hub: hub.BatchV1(), turns: places.New(maxReads, maxReadsOfOne), reasons: newReasons(hub.CoreV1(), timeout, log), workers: workers, timeout: timeout}
}

// Run holds the reasons while anybody asks, until the context ends.
func (s *Server) Run(ctx context.Context) { s.reasons.run(ctx) }

// WorkerReturned has watches send the Jobs again that were out of touch.
func (s *Server) WorkerReturned() { s.reasons.workerReturned() }

// Get responds with one Job.
func (s *Server) Get(w http.ResponseWriter, r *http.Request, key types.NamespacedName, query url.Values) error {
	f, err := formOf(r.Header, query)
	if err != nil {
		return err
	}
	job, err := s.read(r.Context(), key.Namespace, key, query.Get("resourceVersion"))
	if err == nil && !mirror.Managed(job) || apierrors.IsNotFound(err) {
		return apierrors.NewNotFound(resource, key.Name)
	}
	if err != nil {
		return fromHub(err)
	}
	defer s.useReasons(r.Context(), w)()
	seen := s.view(job)
	object, err := f.one(&seen, time.Now(), true)
	if err != nil {
		return err
	}
	return json.NewEncoder(w).Encode(object)
}

// Read reads of a Job what users see of it, and what says where it is.
func (s *Server) Read(ctx context.Context, key types.NamespacedName) (*batchv1.Job, error) {
	return s.read(ctx, key.Namespace, key, "")
}

// read reads a Job from the hub, in a turn of a namespace.
func (s *Server) read(ctx context.Context, turnOf string, key types.NamespacedName, version string) (*batchv1.Job, error) {
	release, err := s.turns.Acquire(ctx, turnOf)
	if err != nil {
		return nil, err
	}
	defer release()
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return s.hub.Jobs(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{ResourceVersion: version})
}

// useReasons waits until the reasons are known, or else warns the client that they aren't.
func (s *Server) useReasons(ctx context.Context, w http.ResponseWriter) (release func()) {
	known, release := s.reasons.use()
	ctx, cancel := context.WithTimeout(ctx, reasonsWait)
	defer cancel()
	select {
	case <-known:
	case <-ctx.Done():
		w.Header().Add("Warning", `299 - "the reasons why Jobs wait aren't known yet: try again"`)
	}
	return release
}

func (s *Server) view(job *batchv1.Job) jobview.DispatchedJob {
	return jobview.Of(job, jobview.Around{Reason: s.reasons.of(jobview.SubjectOf(job)), Workers: s.workers})
}

// fromHub passes on what the hub says about the request. A refusal concerns the manager's rights.
func fromHub(err error) error {
	var said apierrors.APIStatus
	if errors.As(err, &said) {
		switch said.Status().Code {
		case http.StatusBadRequest, http.StatusGone, http.StatusUnprocessableEntity, http.StatusTooManyRequests:
			return err
		}
	}
	if errors.Is(err, context.Canceled) {
		return err
	}
	return apierrors.NewInternalError(fmt.Errorf("the hub doesn't answer for Jobs: %w", err))
}
