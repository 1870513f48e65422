package subresources

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A worker to which no connection could be made isn't waited for as long again, until it answers.
func TestPatience(t *testing.T) {
	dial := &net.OpError{Op: "dial", Err: errors.New("i/o timeout")}
	for name, row := range map[string]struct {
		errs []error
		want time.Duration
	}{
		"new":                    {nil, time.Minute},
		"no connection":          {[]error{fmt.Errorf("get: %w", dial)}, shortPatience},
		"it answers":             {[]error{dial, nil}, time.Minute},
		"it refuses":             {[]error{dial, notFound("no")}, time.Minute},
		"no answer in time":      {[]error{context.DeadlineExceeded}, time.Minute},
		"none in the short time": {[]error{dial, context.DeadlineExceeded}, shortPatience},
		"the user has gone":      {[]error{dial, context.Canceled}, shortPatience},
		"a broken connection":    {[]error{&net.OpError{Op: "read", Err: errors.New("reset")}}, time.Minute},
	} {
		l := &link{}
		for _, err := range row.errs {
			l.silence.note(err)
		}
		if got := l.patience(time.Minute); got != row.want {
			t.Errorf("%s: %s, want %s", name, got, row.want)
		}
	}
	l := &link{}
	l.silence.note(dial)
	before := time.Now().Add(-silenceKept)
	l.silence.since.Store(&before)
	if got := l.patience(time.Minute); got != time.Minute {
		t.Errorf("it's remembered for ever: %s", got)
	}
}

// A worker that takes connections, and says nothing, is silent, too.
func TestASilentWorker(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.DialTimeout = 20 * time.Millisecond })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	good := w.worker.server.URL
	w.worker.server.URL = "https://" + listener.Addr().String()
	w.hub.put(w.worker.secret("2"))
	w.refused("pods", http.StatusGatewayTimeout, "doesn't answer in time")
	if got := w.find.links.of["w"].link.patience(time.Minute); got != shortPatience {
		t.Errorf("the next request waits %s", got)
	}
	w.worker.server.URL = good
	w.hub.put(w.worker.secret("3"))
	w.hub.put(workerCluster(metav1.ConditionTrue, ""))
	if got, err := w.get("pods"); err != nil || got.code != http.StatusOK {
		t.Errorf("%+v, %v", got, err)
	}
}
