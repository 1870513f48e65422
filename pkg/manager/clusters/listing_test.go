package clusters

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// dripJobs begins a watch, and sends a Job of somebody else's in each interval; zero: none ever.
func dripJobs(interval time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Type", jsonType)
		_ = http.NewResponseController(w).Flush() // fails with the connection, as the next line notices
		var ticks <-chan time.Time
		if interval > 0 {
			ticker := time.NewTicker(interval)
			defer ticker.Stop()
			ticks = ticker.C
		}
		for i := 0; ; i++ {
			select {
			case <-req.Context().Done():
				return
			case <-ticks:
				fmt.Fprintf(w, `{"type":"ADDED","object":{"kind":"Job","apiVersion":"batch/v1","metadata":{"namespace":"n","name":"j%d"}}}`+"\n", i)
				_ = http.NewResponseController(w).Flush()
			}
		}
	}
}

// slowPages answers a list with pages of one Job each, without an end.
func slowPages(interval time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		select {
		case <-time.After(interval):
		case <-req.Context().Done():
			return
		}
		i := 0
		_, _ = fmt.Sscan(req.URL.Query().Get("continue"), &i) // the first page has none
		send := `{"kind":"JobList","apiVersion":"batch/v1","metadata":{"resourceVersion":"1","continue":"%d"},"items":[{"metadata":{"namespace":"n","name":"j%d"}}]}`
		w.Header().Set("Content-Type", jsonType)
		fmt.Fprintf(w, send, i+1, i)
	}
}

// TestJobsThatAreNeverListed has a worker answer probes, but never finish the first list: its loss
// clock runs, and goes on while the list is tried again. It's Ready once it answers as it should.
func TestJobsThatAreNeverListed(t *testing.T) {
	const drip = 50 * time.Millisecond
	for name, answers := range map[string]map[string]http.HandlerFunc{
		// the reflector may list instead, after some errors of a watch
		"headers and nothing": {"watch jobs": dripJobs(0), "get jobs": slowPages(time.Hour)},
		"a drip of events":    {"watch jobs": dripJobs(drip), "get jobs": slowPages(time.Hour)},
		"pages without end":   {"watch jobs": http.NotFound, "get jobs": slowPages(drip)},
		"list without answer": {"watch jobs": http.NotFound, "get jobs": slowPages(time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.registry.options.RequestTimeout = 40 * time.Millisecond
			c := w.server.Add("c", "uid", "t")
			for kind, answer := range answers {
				c.Answer(kind, answer)
			}
			worker := w.register("w1", c.Kubeconfig("t"))
			view := w.untilState(worker, Disconnected, v1alpha1.ReasonUnreachable)
			if view.LossClock.IsZero() || !strings.Contains(view.Message, "Jobs can't be") {
				t.Errorf("view: %+v", view)
			}
			tried, probed := c.Requests("watch jobs")+c.Requests("get jobs"), c.Requests("get kube-system")
			w.until("it's tried again", func() bool {
				if state := worker.View().State; state != Disconnected {
					t.Fatalf("it's %s while nothing has changed", state)
				}
				return c.Requests("watch jobs")+c.Requests("get jobs") > tried && c.Requests("get kube-system") > probed+1
			})
			if now := worker.View(); !now.LossClock.Equal(view.LossClock) {
				t.Errorf("the loss clock was set back from %s to %s", view.LossClock, now.LossClock)
			}
			c.Answer("watch jobs", nil)
			c.Answer("get jobs", nil)
			w.untilState(worker, Ready, v1alpha1.ReasonConnected)
		})
	}
}

// TestJobsThatAreNotListedAgain: a worker that was Ready isn't when its Jobs have to be listed
// anew, and never are.
func TestJobsThatAreNotListedAgain(t *testing.T) {
	w := newWorld(t)
	w.registry.options.RequestTimeout = 40 * time.Millisecond
	c := w.server.Add("c", "uid", "t")
	expired := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", jsonType)
		fmt.Fprintln(w, `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}}`)
	}
	worker := w.register("w1", c.Kubeconfig("t"))
	w.untilState(worker, Ready, v1alpha1.ReasonConnected)
	c.Answer("watch jobs", func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Query().Get("sendInitialEvents") == "true" {
			dripJobs(0)(w, req)
			return
		}
		expired(w, req)
	})
	w.server.Cut()
	w.until("its Jobs can't be listed", func() bool {
		return strings.Contains(worker.View().Message, "its Jobs can't be listed: nothing of them has come for")
	})
	if state := worker.View().State; state != Disconnected {
		t.Errorf("it's %s", state)
	}
	c.Answer("watch jobs", nil)
	w.untilState(worker, Ready, v1alpha1.ReasonConnected)
}
