package hub

import (
	"context"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
	"github.com/jobferry/jobferry/pkg/plugin/access"
	"github.com/jobferry/jobferry/pkg/plugin/dashboard/view"
)

const (
	// detailAge is for how long what was read of a Job's workers is shown.
	detailAge = 2 * time.Second
	// detailTimeout bounds the requests for it.
	detailTimeout = 15 * time.Second
	// detailPatience is how long a page waits for them. Then it shows what is known, as a worker that
	// doesn't answer must not hold up the rest.
	detailPatience = time.Second
	// detailsKept is how many Jobs are remembered.
	detailsKept = 8
)

// detailCache has what was read last of the Jobs that somebody looks at.
type detailCache struct {
	mu   sync.Mutex
	kept []*detail // the last used first
}

// detail is about a Job in certain workers: one that moves is asked for anew, even if the worker
// that it has left doesn't answer.
type detail struct {
	subject
	workers part[view.JobInput]
	events  part[ownEvents]
}

type subject struct {
	types.NamespacedName
	uid     types.UID
	workers string
}

func subjectOfDetail(job *batchv1.Job) subject {
	return subject{types.NamespacedName{Namespace: job.Namespace, Name: job.Name}, job.UID, strings.Join(shards.WorkersOf(job), ",")}
}

// of returns the place for a Job.
func (c *detailCache) of(s subject) *detail {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := slices.IndexFunc(c.kept, func(d *detail) bool { return d.subject == s })
	d := &detail{subject: s}
	if at >= 0 {
		d = c.kept[at]
		c.kept = slices.Delete(c.kept, at, at+1)
	}
	c.kept = slices.Insert(c.kept, 0, d)
	c.kept = c.kept[:min(len(c.kept), detailsKept)]
	return d
}

// Details returns all that is known of a Job.
func (h *Hub) Details(ctx context.Context, job *batchv1.Job) view.JobInput {
	d := h.details.of(subjectOfDetail(job))
	last := h.reasons.of(job)
	others := context.WithoutCancel(ctx) // may look at it, too
	patience, cancel := context.WithTimeout(ctx, detailPatience)
	defer cancel()
	for _, read := range []<-chan struct{}{
		refresh(h, &d.events, func() ownEvents { return h.eventsOf(others, job, last) }),
		refresh(h, &d.workers, func() view.JobInput { return h.readDetails(others, d.NamespacedName, job) }),
	} {
		select {
		case <-read:
		case <-patience.Done():
		}
	}
	in, isRead := d.workers.known()
	own, areRead := d.events.known()
	in.Job, in.Reading, in.HubEvents = job, !isRead || !areRead, own.events
	in.Reason, in.Behind = last, !last.At.Equal(own.last.At)
	if own.err != nil {
		in.Missing.Events = append(slices.Clone(in.Missing.Events), "hub: "+own.err.Error())
	}
	return in
}

// readDetails asks what the workers have, and why it waits, at once.
func (h *Hub) readDetails(ctx context.Context, key types.NamespacedName, job *batchv1.Job) (in view.JobInput) {
	ctx, cancel := context.WithTimeout(ctx, detailTimeout)
	defer cancel()
	subresources, err := access.NewSubresources(h.config, key)
	if err != nil {
		in.Missing.Pods = []string{err.Error()}
		return in
	}
	var reading sync.WaitGroup
	if len(shards.WorkersOf(job)) > 0 {
		reading.Go(func() {
			in.Pods, in.Missing.Pods = itemsOf(subresources.Pods(ctx, ""))
			for i := range in.Pods {
				trimPod(&in.Pods[i])
			}
		})
		reading.Go(func() {
			in.WorkerEvents, in.Missing.Events = itemsOf(subresources.Events(ctx, ""))
			for i := range in.WorkerEvents {
				in.WorkerEvents[i].ManagedFields = nil
			}
		})
	}
	if !mirror.Finished(job) {
		reading.Go(func() {
			why, err := subresources.Why(ctx)
			if err != nil {
				in.Missing.Why = missing(err)
				return
			}
			in.Why = why
		})
	}
	reading.Wait()
	return in
}

// itemsOf are the items of an answer, and what it lacks.
func itemsOf[T any](list *access.List[T], err error) (items []T, lacks []string) {
	if err != nil {
		return nil, missing(err)
	}
	return list.Items, list.Warnings
}

// missing is the text for an error; a mirror that isn't there yet, or any more, is none.
func missing(err error) []string {
	if apierrors.IsNotFound(err) && !access.Advised(err) {
		return nil
	}
	return []string{err.Error()}
}

// Log opens the log of one container, and follows it.
func (h *Hub) Log(ctx context.Context, job types.NamespacedName, choice access.PodChoice, options *corev1.PodLogOptions) (io.ReadCloser, error) {
	subresources, err := access.NewSubresources(h.config, job)
	if err != nil {
		return nil, err
	}
	return subresources.Log(ctx, choice, options)
}
