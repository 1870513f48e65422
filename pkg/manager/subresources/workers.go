package subresources

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/jobferry/jobferry/pkg/mirror/shards"
	"github.com/jobferry/jobferry/pkg/util/apistatus"
)

// timeouts is how many timeouts of one request all workers of a Job may take together, if there are
// several. By default that is less than the minute after which the hub's API server gives up.
const timeouts = 3

// each calls do with the Job's mirror in each worker. It returns the errors of the workers for
// which that failed, or, if it failed for all of them, one error.
//
// It asks the workers one after the other: whatever their number, a request holds one chunk of one
// answer. Of the time and the chunks that are left, each worker gets an equal part, so that one
// that hangs or never comes to an end leaves enough for the others.
func (p *placed) each(ctx context.Context, do func(context.Context, *location) error) (failed []error, err error) {
	end, chunks, bytes := time.Now().Add(timeouts*p.timeout), maxChunks, int64(maxPodBytes)
	for i, worker := range p.workers {
		share := len(p.workers) - i
		within, cancel := context.WithTimeout(ctx, time.Until(end)/time.Duration(share))
		at, err := p.at(within, worker)
		if err == nil {
			at.chunks, at.bytes = chunks/share, bytes/int64(share)
			chunks, bytes = chunks-at.chunks, bytes-at.bytes
			err = do(within, at)
			chunks, bytes = chunks+at.chunks, bytes+max(at.bytes, 0)
		}
		cancel()
		if ctx.Err() != nil {
			return nil, cmp.Or(err, ctx.Err()) // the client has gone, or the manager is shut down
		}
		if err != nil {
			failed = append(failed, err)
		}
	}
	if len(failed) == len(p.workers) {
		return nil, together(failed)
	}
	return failed, nil
}

// names are the workers' names, for WorkerHeader.
func (p *placed) names() string { return strings.Join(p.workers, ", ") }

// on is the same Job, with some of its workers.
func (p *placed) on(workers []string) *placed { return &placed{p.finder, p.job, workers} }

// chosen is the Pod of a Job that a user has chosen, and where it is.
type chosen struct {
	*location
	pod *corev1.Pod
	// unasked are the errors of the workers that may have a Pod, too, which would have been chosen.
	unasked []error
}

// name writes the headers that say what has been chosen.
func (c *chosen) name(w http.ResponseWriter) {
	w.Header().Set(WorkerHeader, c.worker)
	w.Header().Set(PodHeader, c.pod.Name)
	for _, message := range messages(c.unasked) {
		if warning, err := utilnet.NewWarningHeader(warningCode, "-", message); err == nil {
			w.Header().Add("Warning", warning)
		}
	}
}

// warningCode is that of all warnings of Kubernetes' API servers.
const warningCode = 299

// pod returns the chosen Pod of a hub Job. A Pod of an index is looked for where the index is
// placed, and elsewhere only if that worker says that it has none: the index may have moved.
func (f *finder) pod(ctx context.Context, req *request, w podChoice, r rank) (*chosen, error) {
	p, err := f.find(ctx, req)
	if err != nil {
		return nil, err
	}
	first, others := p.byIndex(w.index)
	found, err := p.on(first).search(ctx, w, r)
	if err == nil || len(others) == 0 || !isAbsent(err) {
		return found, err
	}
	found, elsewhere := p.on(others).search(ctx, w, r)
	if elsewhere != nil {
		return nil, together([]error{err, elsewhere})
	}
	return found, nil
}

// byIndex returns the worker whose shard has the index, and the others. If there is none, all are
// first.
func (p *placed) byIndex(index string) (first, others []string) {
	n, err := strconv.Atoi(index)
	if err != nil {
		return p.workers, nil
	}
	placement, err := shards.Read(p.job)
	if err != nil {
		return p.workers, nil // placed on one worker, or someone has edited it
	}
	for _, s := range placement.Shards {
		if i := slices.Index(p.workers, s.Worker); i >= 0 && s.Indexes.Has(n) {
			return p.workers[i : i+1], slices.Delete(slices.Clone(p.workers), i, i+1)
		}
	}
	return p.workers, nil
}

// search returns the chosen Pod: of several the first by rank, but none of several with one name.
func (p *placed) search(ctx context.Context, w podChoice, r rank) (*chosen, error) {
	var best *chosen
	var holders []string
	failed, err := p.each(ctx, func(ctx context.Context, at *location) error {
		pod, err := at.pod(ctx, w, r)
		if err != nil {
			return err
		}
		holders = append(holders, strconv.Quote(at.worker))
		if best == nil || r.better(pod, best.pod) {
			best = &chosen{location: at, pod: pod}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	best.unasked = slices.DeleteFunc(failed, isAbsent)
	switch {
	case w.pod == "":
		return best, nil
	case len(holders) > 1:
		return nil, apierrors.NewBadRequest(fmt.Sprintf("worker: each of the workers %s has a Pod %q of Job %q; name one of them",
			strings.Join(holders, ", "), w.pod, p.job.Name))
	case len(best.unasked) > 0:
		// No worker can take the place of another that doesn't answer by a Pod of that name.
		return nil, unavailable("worker %s has a Pod %q of Job %q, and whether it is the only one isn't known; choose that worker if you mean it: %s",
			holders[0], w.pod, p.job.Name, together(best.unasked))
	default:
		return best, nil
	}
}

// isAbsent reports whether a worker has answered that it has no such Pod, or no mirror yet.
func isAbsent(err error) bool {
	code := apistatus.Of(err).Code
	return code == http.StatusNotFound || code == http.StatusConflict
}

// together makes one error of those of several workers. What waiting may change comes first, and
// determines the code, then what isn't known, and last that nothing is there.
func together(errs []error) error {
	if len(errs) == 1 {
		return errs[0]
	}
	order := func(err error) int { // -1: nothing is there; 0: not known; 1: it will change
		return slices.Index([]bool{!isAbsent(err), apistatus.Of(err).Code == http.StatusConflict}, true)
	}
	errs = slices.SortedStableFunc(slices.Values(errs), func(a, b error) int { return cmp.Compare(order(b), order(a)) })
	status := apistatus.Of(errs[0])
	status.Message = strings.Join(messages(errs), "; ")
	return &apierrors.StatusError{ErrStatus: status}
}

func messages(errs []error) []string {
	var all []string
	for _, err := range errs {
		all = append(all, apistatus.Of(err).Message)
	}
	return all
}
