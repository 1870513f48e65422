package subresources_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager"
	"github.com/jobferry/jobferry/pkg/manager/subresources"
)

// rarely has the manager probe its workers rarely.
func rarely(o *manager.Options) { o.Connection.ProbeInterval = time.Hour }

func quick(o *subresources.Options) { o.RequestTimeout, o.DialTimeout = 5*time.Second, 2*time.Second }

// onBoth runs a Job on each of the workers, named like them.
func onBoth(f *ferrytest.Ferry) {
	for _, worker := range []string{"w1", "w2"} {
		f.Submit(worker, ferrytest.OnWorker(worker), rigtest.RunForever())
		f.LeaveWorker(worker)
		f.HubJobUntil(worker, rigtest.Running(1))
	}
}

// A worker that hangs costs its own users a timeout, and doesn't affect others.
func TestBlackHole(t *testing.T) {
	f := ferrytest.For(t)
	m := f.RunManager(rarely)
	f.Register("w1", "w2")
	serve(f, t, quick)
	onBoth(f)
	u := reader(f, t)
	u.must(f.Context(), f.NS, "w2", "log")

	proxy := f.Cluster("w2").Proxy()
	proxy.BlackHole()
	t.Cleanup(proxy.Heal)
	hung := make(chan error, 1)
	go func() {
		_, err := u.get(f.Context(), f.NS, "w2", "log")
		hung <- err
	}()
	for range 5 {
		u.must(f.Context(), f.NS, "w1", "pods")
	}
	select {
	case err := <-hung:
		t.Errorf("the hanging worker answered before the other: %v", err)
	default:
	}
	u.expect(<-hung, http.StatusGatewayTimeout, `worker "w2" doesn't answer in time`)

	// As soon as the manager knows, no request waits.
	m.Stop()
	f.RunManager()
	f.WorkerUntil("w2", ferrytest.NotReady(v1alpha1.ReasonUnreachable))
	u.refused(f.Context(), http.StatusServiceUnavailable, `worker "w2" is out of touch since`, f.NS, "w2", "events")
	proxy.Heal()
	f.WorkerUntil("w2", ferrytest.Ready)
	u.must(f.Context(), f.NS, "w2", "log")
}

// follow opens a log, and reads its first line.
func (u *user) follow(ctx context.Context, namespace, job string) (*bufio.Reader, io.Closer) {
	u.t.Helper()
	stream, err := u.api.Get().AbsPath(path(namespace, job, "log")).Param("follow", "true").Stream(ctx)
	u.check(err)
	u.t.Cleanup(func() { stream.Close() })
	lines := bufio.NewReader(stream)
	_, err = lines.ReadString('\n')
	u.check(err)
	return lines, stream
}

// A log that is cut off must not look like one that has ended.
func TestBrokenStreams(t *testing.T) {
	f := ferrytest.For(t)
	f.RunManager(rarely)
	f.Register("w1", "w2")
	s := serve(f, t, quick)
	onBoth(f)
	u := reader(f, t)
	cut, _ := u.follow(f.Context(), f.NS, "w2")
	running, _ := u.follow(f.Context(), f.NS, "w1")

	f.Cluster("w2").Proxy().ResetOnce()
	if rest, err := io.ReadAll(cut); err == nil {
		t.Errorf("the worker's connection broke, and the log seems complete: %q", rest)
	}
	_, err := running.ReadString('\n')
	u.check(err)

	began := time.Now()
	s.stop()
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("the server took %s to end", took)
	}
	if rest, err := io.ReadAll(running); err == nil {
		t.Errorf("the server ended, and the log seems complete: %q", rest)
	}
}

func TestLimits(t *testing.T) {
	f := ferrytest.For(t)
	f.RunManager()
	f.Register("w1", "w2")
	serve(f, t, func(o *subresources.Options) { o.StreamsPerUser = 1 })
	onBoth(f)
	u := reader(f, t)
	_, open := u.follow(f.Context(), f.NS, "w1")
	u.refused(f.Context(), http.StatusTooManyRequests, `user "reader" has 1 streams open here, which is the limit for a user`, f.NS, "w1", "log")
	u.must(f.Context(), f.NS, "w1", "pods") // isn't a stream
	other := login(f, t, "other").grant(f, f.NS, "get: jobs/log")
	other.must(f.Context(), f.NS, "w1", "log")

	open.Close()
	for {
		_, err := u.get(f.Context(), f.NS, "w1", "log")
		if err == nil {
			return // the place was given back
		}
		if statusOf(err).Code != http.StatusTooManyRequests || errors.Is(f.Context().Err(), context.DeadlineExceeded) {
			t.Fatal(err)
		}
	}
}
