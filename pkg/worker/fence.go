package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/fence"
)

// askTimeout is how long the worker's own API server may take to list the Leases, or to take an
// answer: no fence waits for longer than that with its closing.
const askTimeout = 5 * time.Second

// fencer keeps the fence.Book: it listens to the hubs' Leases, and has the Jobs of an origin synced
// when its fence closes. It runs on every replica, so that one that takes over knows for how long
// nothing was heard; it writes on the leader.
type fencer struct {
	leases  coordinationclient.LeaseInterface
	after   time.Duration
	clock   clock.Clock
	log     logr.Logger
	events  record.EventRecorder
	metrics *fenceMetrics
	elected <-chan struct{}
	// registry has the fencer's gauges for as long as it runs.
	registry prometheus.Registerer
	wake     func(context.Context, v1alpha1.Origin)

	kicked chan struct{} // room for one: there is news

	mu   sync.Mutex // guards what follows; never held during a request
	book *fence.Book
	// unanswered are the origins whose Lease doesn't say our After.
	unanswered map[v1alpha1.Origin]bool
	// late is what was last told of an origin whose hub doesn't wait for us.
	late map[v1alpha1.Origin]string
}

// closed says whether an origin's Jobs must not run.
func (f *fencer) closed(origin v1alpha1.Origin) bool {
	if f == nil || origin == "" {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.book.Closed(origin)
}

// ready is the readiness check: a fence that closes too late for its hub is none.
func (f *fencer) ready(*http.Request) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var errs []error
	for origin, err := range f.book.Late() {
		errs = append(errs, fmt.Errorf("hub %s: %w", origin, err))
	}
	return errors.Join(errs...)
}

// NeedLeaderElection says that the fencer runs on every replica.
func (f *fencer) NeedLeaderElection() bool { return false }

// Start keeps the book until the context ends.
func (f *fencer) Start(ctx context.Context) error {
	var watching sync.WaitGroup
	watching.Go(func() { f.watch(ctx) })
	defer watching.Wait()
	if err := f.registry.Register(fenceCollector{f}); err == nil { // else: of another cluster in this process
		defer f.registry.Unregister(fenceCollector{f})
	}
	timer := f.clock.NewTimer(0)
	defer timer.Stop()
	elected := f.elected
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-elected:
			elected = nil
		case <-f.kicked:
		case <-timer.C():
		}
		if next := f.turn(ctx); next > 0 {
			timer.Reset(next)
		}
	}
}

// turn does what is due, and answers with the time until something is again; zero for when there is
// news.
func (f *fencer) turn(ctx context.Context) time.Duration {
	if f.expecting() {
		f.ask(ctx)
	}
	f.mu.Lock()
	closed, next := f.book.Tick(f.clock.Now())
	f.mu.Unlock()
	for _, origin := range closed {
		f.log.Info("The hub's Lease has expired: its Jobs are stopped until it's in touch again", "origin", origin, "fenceAfter", f.after)
		f.wake(ctx, origin)
	}
	if f.leads() {
		f.complain()
		f.answer(ctx)
	}
	return next
}

func (f *fencer) expecting() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.book.Expecting(f.clock.Now())
}

// ask lists the Leases: a watch may be behind, and doesn't tell whether the API server is there. A
// Lease that isn't there is forgotten, whatever was heard of it last.
func (f *fencer) ask(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	list, err := f.leases.List(ctx, metav1.ListOptions{LabelSelector: v1alpha1.LabelOrigin})
	if err == nil {
		f.hearAll(list.Items)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.book.Touch(err == nil, f.clock.Now())
}

func (f *fencer) hear(lease *coordinationv1.Lease) {
	word, ours := fence.Read(lease)
	if !ours {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	wasClosed := f.book.Closed(word.Origin)
	f.book.Hear(word, f.clock.Now())
	if word.After == f.after {
		delete(f.unanswered, word.Origin)
	} else {
		f.unanswered[word.Origin] = true
	}
	if wasClosed && !f.book.Closed(word.Origin) {
		f.log.Info("The hub is in touch again; its Jobs go on as soon as it confirms them", "origin", word.Origin)
	}
}

// hearAll takes the Leases for all that there are.
func (f *fencer) hearAll(leases []coordinationv1.Lease) {
	there := map[v1alpha1.Origin]bool{}
	for i := range leases {
		if word, ours := fence.Read(&leases[i]); ours {
			there[word.Origin] = true
			f.hear(&leases[i])
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, origin := range f.book.Origins() {
		if !there[origin] {
			f.drop(origin)
		}
	}
}

func (f *fencer) forget(lease *coordinationv1.Lease) {
	word, ours := fence.Read(lease)
	if !ours {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.drop(word.Origin)
}

// drop forgets an origin; the caller holds the lock.
func (f *fencer) drop(origin v1alpha1.Origin) {
	f.book.Forget(origin)
	delete(f.unanswered, origin)
	delete(f.late, origin)
}

func (f *fencer) leads() bool {
	select {
	case <-f.elected:
		return true
	default:
		return false
	}
}

// answer tells the hubs when we close the fence. What fails is tried again at the next renewal.
func (f *fencer) answer(ctx context.Context) {
	f.mu.Lock()
	origins := make([]v1alpha1.Origin, 0, len(f.unanswered))
	for origin := range f.unanswered {
		origins = append(origins, origin)
	}
	f.mu.Unlock()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"annotations": map[string]string{v1alpha1.AnnotationFenceAfter: f.after.String()},
	}})
	if err != nil {
		f.log.Error(err, "Lease can't be answered")
		return
	}
	slices.Sort(origins)
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	for _, origin := range origins {
		answered, err := f.leases.Patch(ctx, origin.FenceLease(), types.MergePatchType, patch, metav1.PatchOptions{})
		switch {
		case err == nil:
			f.hear(answered)
		case !apierrors.IsNotFound(err) && ctx.Err() == nil:
			f.log.Error(err, "The hub can't be told when the fence closes", "origin", origin)
		}
	}
}

// complain tells, once, of fences that close too late.
func (f *fencer) complain() {
	f.mu.Lock()
	defer f.mu.Unlock()
	late := f.book.Late()
	for origin, err := range late {
		if f.late[origin] == err.Error() {
			continue
		}
		f.late[origin] = err.Error()
		f.log.Error(err, "The fence is of no use", "origin", origin)
		f.events.Event(&coordinationv1.Lease{
			TypeMeta:   metav1.TypeMeta{APIVersion: coordinationv1.SchemeGroupVersion.String(), Kind: "Lease"},
			ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.SystemNamespace, Name: origin.FenceLease()},
		}, corev1.EventTypeWarning, "FenceTooLate", err.Error())
	}
	for origin := range f.late {
		if late[origin] == nil {
			delete(f.late, origin)
		}
	}
}

// kick makes the loop have a look.
func (f *fencer) kick() {
	select {
	case f.kicked <- struct{}{}:
	default: // it will have one anyway
	}
}
