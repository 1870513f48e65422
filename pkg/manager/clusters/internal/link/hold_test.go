package link

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/semaphore"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
)

// aHold is what one answer of a worker holds, of which there is no other.
func aHold() *hold { return holdsOf(semaphore.NewWeighted(3 * maxDecodedBytes))() }

// holdsOf makes what the answers of one worker hold.
func holdsOf(all *semaphore.Weighted) func() *hold {
	worker := semaphore.NewWeighted(1)
	return func() *hold { return &hold{worker: worker, all: all, ofAnswer: true} }
}

// answering is one of a worker's answers, which is read in a test.
type answering struct {
	body   io.ReadCloser
	object apiruntime.Object
	err    error
}

func (a *answering) read() {
	data, err := io.ReadAll(a.body)
	if a.err = err; err == nil {
		a.object, _, a.err = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Decode(data, nil, nil)
	}
}

// answers has a worker send some body to a request of the manager, whose context may end.
func answers(ctx context.Context, t *testing.T, path string, body io.ReadCloser, h *hold) *answering {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, AnyHost+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp := &http.Response{StatusCode: http.StatusOK, Request: req, Body: body, Header: http.Header{"Content-Type": {protobufType}}}
	bound(informerRequest, resp, h, func(err *BoundError) { t.Error(err) })
	return &answering{body: resp.Body}
}

func bodyOf(data []byte) io.ReadCloser { return io.NopCloser(bytes.NewReader(data)) }

// becomesLarge is an answer of a hundred kilobytes that is some 30 MiB when it's decoded.
func becomesLarge(t *testing.T) []byte { return repeated(t, 70_000, "Job", 2, 6, 2, 2) }

// TestLargeAnswersAtOnce: three workers send eight answers each, all at once, that become large.
// One of each worker is decoded at a time, and of few workers.
func TestLargeAnswersAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data, all, before := becomesLarge(t), semaphore.NewWeighted(2*maxDecodedBytes), heap()
		var mu sync.Mutex
		var held []*answering
		var running sync.WaitGroup
		for range 3 {
			holds := holdsOf(all)
			for range 8 {
				a := answers(t.Context(), t, "/x", bodyOf(data), holds())
				running.Go(func() {
					a.read()
					mu.Lock()
					defer mu.Unlock()
					held = append(held, a)
				})
			}
		}
		most, read := 0, 0
		for synctest.Wait(); len(held) > 0; synctest.Wait() {
			most = max(most, int(heap()-before)>>20)
			read += len(held)
			for _, a := range held {
				if a.err != nil {
					t.Fatal(a.err)
				}
			}
			used := held
			held = nil
			for _, a := range used {
				_ = a.body.Close()
			}
		}
		running.Wait()
		if read != 3*8 || most > 128 {
			t.Errorf("%d are read, and %d MiB are held at once", read, most)
		}
	})
}

// TestAnAnswerWithoutAnEndHoldsUpItsWorker: what a worker doesn't send on keeps only its own large
// answers waiting, until their time is over.
func TestAnAnswerWithoutAnEndHoldsUpItsWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := semaphore.NewWeighted(3 * maxDecodedBytes)
		hostile, other := holdsOf(all), holdsOf(all)
		from, to := io.Pipe()
		endless := answers(t.Context(), t, "/x?watch=true", from, hostile())
		var running sync.WaitGroup
		running.Go(endless.read)
		_, _ = to.Write([]byte(frame(3 << 20)))
		_, _ = to.Write(make([]byte, 2<<20))

		large, small := becomesLarge(t), repeated(t, 100, "Job", 2, 6, 2, 2)
		for name, a := range map[string]*answering{
			"a small one of this worker": answers(t.Context(), t, "/x", bodyOf(small), hostile()),
			"a large one of another":     answers(t.Context(), t, "/x", bodyOf(large), other()),
		} {
			if a.read(); a.err != nil {
				t.Errorf("%s: %v", name, a.err)
			}
			_ = a.body.Close()
		}
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
		defer cancel()
		waiting := answers(ctx, t, "/x", bodyOf(large), hostile())
		if waiting.read(); !errors.Is(waiting.err, context.DeadlineExceeded) {
			t.Errorf("a large one of this worker: %v", waiting.err)
		}
		_ = endless.body.Close()
		_ = to.Close()
		running.Wait()
		next := answers(t.Context(), t, "/x", bodyOf(large), hostile())
		if next.read(); next.err != nil {
			t.Errorf("after the end: %v", next.err)
		}
	})
}

// TestAHoldOfSeveralAnswers: one action's requests wait neither for each other nor, while their
// worker is waited for, keep others waiting.
func TestAHoldOfSeveralAnswers(t *testing.T) {
	l := &Link{large: semaphore.NewWeighted(1)}
	ctx, release := l.Hold(t.Context())
	if inner, nothing := l.Hold(ctx); inner != ctx {
		t.Error("a hold in a hold is another one")
	} else {
		nothing()
	}
	data := becomesLarge(t)
	for range 5 {
		h := l.holdOf(ctx)
		h.waits()
		a := answers(ctx, t, "/x", bodyOf(data), h)
		if a.read(); a.err != nil {
			t.Fatal(a.err)
		}
		_ = a.body.Close()
		if h.decoded < 16<<20 || l.large.TryAcquire(1) {
			t.Errorf("%d bytes are held", h.decoded)
		}
		runtime.KeepAlive(a)
	}
	h := l.holdOf(ctx)
	h.waits()
	if h.decoded != 0 || !h.alone {
		t.Errorf("while the worker is waited for, %d bytes of all are held", h.decoded)
	}
	if release(); !l.large.TryAcquire(1) {
		t.Error("the worker's place isn't given back")
	}
}

// TestAnEventIsHeldUntilTheNext: a watch that waits, and one that has been stopped, hold nothing.
func TestAnEventIsHeldUntilTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		holds := holdsOf(semaphore.NewWeighted(maxDecodedBytes))
		h := holds()
		from, to := io.Pipe()
		watch := answers(t.Context(), t, "/x?watch=true", from, h)
		event := make([]byte, 2<<20)
		go func() { _, _ = to.Write(append([]byte(frame(2<<20)), event...)) }()
		if _, err := io.ReadFull(watch.body, make([]byte, 4+len(event))); err != nil || !h.alone {
			t.Errorf("while an event is taken, it isn't held: %v", err)
		}
		var running sync.WaitGroup
		running.Go(watch.read)
		synctest.Wait()
		if h.alone {
			t.Error("an event is held for ever")
		}
		other := holds()
		if err := other.large(t.Context()); err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = to.Write(append([]byte(frame(2<<20)), event...)) }()
		synctest.Wait() // it waits for the other
		_ = watch.body.Close()
		running.Wait()
		if other.release(); h.alone || !h.worker.TryAcquire(1) {
			t.Error("a watch that was stopped while it waited holds a place")
		}
	})
}
