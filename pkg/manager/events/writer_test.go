package events

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/util/costtest"
)

// Two events of one reason about one state of a Job are two, with a note each.
func TestEventWriterWritesEachNote(t *testing.T) {
	written := make(chan *eventsv1.Event)
	hub := interceptor.NewClient(fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build(), interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			written <- o.(*eventsv1.Event)
			return nil
		},
	})
	w := NewWriter(hub)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- w.Start(ctx) }()
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "train", UID: "uid", ResourceVersion: "7"}}
	notes := map[string]bool{"1 cordoned": true, "1 Insufficient cpu": true}
	for note := range notes {
		w.Eventf(job, nil, corev1.EventTypeWarning, "Drift", "Dispatch", "%s", note)
	}
	names := map[string]bool{}
	for range len(notes) {
		e := <-written
		if !notes[e.Note] || names[e.Name] {
			t.Errorf("event %s with the note %q", e.Name, e.Note)
		}
		delete(notes, e.Note)
		names[e.Name] = true
		if e.Namespace != "team" || e.Regarding.UID != "uid" || e.Regarding.Kind != "Job" || e.Reason != "Drift" ||
			e.Type != corev1.EventTypeWarning || e.EventTime.IsZero() || e.ReportingController == "" || e.ReportingInstance == "" || e.Action == "" {
			t.Errorf("event %+v", e)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// Of what a Job waits for, the newest is written, in the turn of the first: there are no more
// events than Jobs, however often that changes while the hub is slow.
func TestOnlyTheNewestReasonToWaitIsWritten(t *testing.T) {
	var written []string
	hub := interceptor.NewClient(fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build(), interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			e := o.(*eventsv1.Event)
			written = append(written, e.Regarding.Name+": "+e.Note)
			return nil
		},
	})
	w := NewWriter(hub)
	w.helpers = nil // one at a time
	tell := func(name, reason, note string) {
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name)}}
		w.Eventf(job, nil, corev1.EventTypeWarning, reason, "Dispatch", "%s", note)
	}
	tell("a", v1alpha1.EventPending, "1 cordoned")
	tell("b", v1alpha1.EventPending, "1 cordoned")
	tell("a", v1alpha1.EventPending, "1 draining, and many more words than before")
	tell("b", v1alpha1.EventPlaced, "on west")
	tell("b", v1alpha1.EventPending, "west is drained")
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := w.Start(ctx); err != nil {
		t.Error(err)
	}
	w.Flush()
	want := []string{"a: 1 draining, and many more words than before", "b: 1 cordoned", "b: on west", "b: west is drained"}
	if !slices.Equal(written, want) || w.waiting.bytes != 0 {
		t.Errorf("%q, and %d bytes wait", written, w.waiting.bytes)
	}
}

// Late events are written by several at once, and others by one.
func TestWritersHelpWhenEventsAreLate(t *testing.T) {
	for name, test := range map[string]struct {
		late time.Duration
		most int
	}{"late": {time.Minute, maxWriters}, "in time": {time.Hour, 1}} {
		t.Run(name, func(t *testing.T) {
			const told = 20
			began, goOn := make(chan struct{}), make(chan struct{})
			hub := interceptor.NewClient(fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build(), interceptor.Funcs{
				Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
					began <- struct{}{}
					<-goOn
					return nil
				},
			})
			w := NewWriter(hub)
			w.late = test.late
			for range told {
				w.waiting.add(&eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "team"}}, time.Now().Add(-10*time.Minute))
			}
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- w.Start(ctx) }()
			for range test.most {
				<-began
			}
			if left := w.waiting.len(); left != told-test.most {
				t.Errorf("%d of %d events wait", left, told)
			}
			go func() {
				for range told - test.most {
					<-began
				}
				stop()
			}()
			close(goOn)
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// What happened just before the manager stops is reported, as far as that is quick.
func TestEventsAreWrittenBeforeTheManagerStops(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		var written atomic.Int32
		hub := interceptor.NewClient(fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build(), interceptor.Funcs{
			Create: func(ctx context.Context, _ client.WithWatch, _ client.Object, _ ...client.CreateOption) error {
				if hangs {
					<-ctx.Done()
					return ctx.Err()
				}
				written.Add(1)
				return nil
			},
		})
		w := NewWriter(hub)
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "train", UID: "uid"}}
		const told = 100
		for range told {
			w.Eventf(job, nil, corev1.EventTypeNormal, "Placed", "Dispatch", "Placed on worker east")
		}
		ctx, stop := context.WithCancel(t.Context())
		stop()
		began := time.Now()
		if err := w.Start(ctx); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took >= lastEvents {
			t.Errorf("the next leader waits for events, for %s", took)
		}
		w.Flush()
		if got := written.Load(); !hangs && got != told {
			t.Errorf("%d of %d events were written", got, told)
		}
	}
}

// One namespace's flood neither drops nor delays the events of others.
func TestAFloodLeavesOthersTheirEvents(t *testing.T) {
	var written []string
	hub := interceptor.NewClient(fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build(), interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			written = append(written, o.GetNamespace())
			return nil
		},
	})
	w := NewWriter(hub)
	w.helpers = nil // one at a time
	tell := func(namespace string, times int) {
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "train", UID: "uid"}}
		for range times {
			w.Eventf(job, nil, corev1.EventTypeNormal, "Placed", "Dispatch", "Placed on worker east")
		}
	}
	tell("noisy", 40_000)
	tell("quiet", 3)
	tell("other", 2)
	tell("noisy", 10)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := w.Start(ctx); err != nil {
		t.Error(err)
	}
	w.Flush()
	first := map[string]int{}
	for _, namespace := range written[:9] {
		first[namespace]++
	}
	if first["quiet"] != 3 || first["other"] != 2 {
		t.Errorf("the first events are of %v", first)
	}
}

// Events with long notes take no more memory than those with short ones.
func TestManyEventsTakeLittleMemory(t *testing.T) {
	const most = 20 << 20
	w := NewWriter(fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build())
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "noisy", Name: "train", UID: "uid"}}
	other := job.DeepCopy()
	other.Namespace = "other"
	before := costtest.Heap()
	for range 40_000 {
		w.Eventf(job, nil, corev1.EventTypeNormal, "Placed", "Dispatch", "%s", strings.Repeat("x", 1024))
	}
	took := costtest.Heap() - before
	t.Logf("%d events take %d KiB", w.waiting.len(), took>>10)
	if took > most || w.waiting.len() < 5000 {
		t.Errorf("%d events take %d KiB", w.waiting.len(), took>>10)
	}
	// others get their part, and all is counted down again
	waited := w.waiting.len()
	for range 1000 {
		w.Eventf(other, nil, corev1.EventTypeNormal, "Placed", "Dispatch", "x")
	}
	if n := len(w.waiting.byNamespace["other"].events); n != 1000 || w.waiting.len() < waited || w.waiting.bytes > maxWaitingBytes {
		t.Errorf("of another namespace %d events wait, of all %d, which take %d KiB", n, w.waiting.len(), w.waiting.bytes>>10)
	}
	for event, _ := w.waiting.take(time.Now()); event != nil; event, _ = w.waiting.take(time.Now()) {
	}
	if w.waiting.bytes != 0 || w.waiting.count != 0 || len(w.waiting.byNamespace)+len(w.waiting.turns) > 0 {
		t.Errorf("nothing waits, but %+v", w.waiting)
	}
}

// A flood of events isn't one of the log.
func TestDropsAreLoggedOnceASecond(t *testing.T) {
	var d drops
	now := time.Unix(1000, 0)
	lines, events := 0, 0
	for range 1000 {
		if n := d.add(2, now); n > 0 {
			lines, events = lines+1, events+n
		}
		now = now.Add(10 * time.Millisecond)
	}
	if lines != 10 || events < 1800 {
		t.Errorf("%d lines tell of %d events", lines, events)
	}
}
