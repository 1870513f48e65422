package bench

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/jobferry/jobferry/e2e/bench/report"
)

func TestFloodOptions(t *testing.T) {
	testOptions(t, DefaultFloodOptions(), map[string]func(*FloodOptions){
		"no Jobs":       func(o *FloodOptions) { o.Jobs = 0 },
		"no workers":    func(o *FloodOptions) { o.Workers = 0 },
		"no submitters": func(o *FloodOptions) { o.Submitters = 0 },
		"singles":       func(o *FloodOptions) { o.Singles = -1 },
		"resting":       func(o *FloodOptions) { o.Resting = -1 },
		"quiet":         func(o *FloodOptions) { o.Quiet = -1 },
		"completions":   func(o *FloodOptions) { o.Completions = 0 },
		"parallelism":   func(o *FloodOptions) { o.Parallelism = 0 },
		"comparisons":   func(o *FloodOptions) { o.Pods, o.Against = true, "jobferry-manager" },
	})
}

// flooded is the result of a run within some time, which is shown.
func flooded(t *testing.T, within time.Duration, o FloodOptions, show func(io.Writer, *report.Result) error) *report.Result {
	t.Helper()
	o.Manager, o.Progress = builtManager(t), t.Logf
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	result, err := RunFlood(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := show(t.Output(), result); err != nil {
		t.Fatal(err)
	}
	return result
}

// Pods are shown on the hub, beside Pods that aren't: for at most three requests each, and one that
// removes it, which the hub's garbage collector often comes before; and none otherwise.
func TestFloodWithPods(t *testing.T) {
	o := DefaultFloodOptions()
	o.Jobs, o.Completions, o.Parallelism, o.Rounds, o.Singles, o.Resting, o.Quiet, o.Floor, o.Pods = 5, 6, 2, 1, 0, 0, 0, false, true
	result := flooded(t, 10*time.Minute, o, report.AgainstMarkdown)
	pods := o.Jobs * o.Completions
	for _, r := range result.Rounds {
		if least, most := 2*pods, 4*pods; r.IsBase && r.Used.PodRequests > 0 || !r.IsBase && (r.Used.PodRequests < least || r.Used.PodRequests > most) {
			t.Errorf("%d requests for %d Pods, shown: %t", r.Used.PodRequests, pods, !r.IsBase)
		}
	}
}

// Twenty Jobs go all ways: into one cluster, by the least writes, and by way of the manager, which
// makes three requests and one event for each, and writes a status no more often than a worker
// does: how often that is depends on the machine. `make bench` is the long form, which judges all
// goals.
func TestFlood(t *testing.T) {
	o := DefaultFloodOptions()
	o.Jobs, o.Rounds, o.Singles, o.Resting, o.Quiet, o.Bound = 20, 1, 3, 2, 0, true
	result := flooded(t, 20*time.Minute, o, report.Markdown)
	statuses, others := -o.Jobs, 0 // each is placed by a patch of its status, too
	for _, c := range result.Requests {
		switch {
		case c.Cluster == "hub" && c.Resource == "jobs/status":
			statuses += c.Requests
		case !c.IsEvent():
			others += c.Requests
		}
	}
	if _, events := result.PerJob(); others > 2*o.Jobs || events > 1 {
		t.Errorf("%d requests other than statuses and %.2f events per Job for %d Jobs", others, events, o.Jobs)
	}
	// A busy hub is told of some starts together with the end.
	if statuses < o.Jobs || statuses > result.Statuses {
		t.Errorf("%d writes of statuses for %d Jobs, whose statuses the workers wrote %d times", statuses, o.Jobs, result.Statuses)
	}
	if worse := report.Worse(result); len(worse) > 0 {
		t.Errorf("worse than nothing: %s", worse)
	}
	if r := result.Rounds[0]; r.Bound.CPU.All() <= 0 || r.Bound.CPU.Clusters[report.OnHub+"kube-apiserver"] <= 0 {
		t.Errorf("the lower bound used no CPU: %+v", r.Bound)
	}
}

// The same Jobs go by way of MultiKueue afterwards. Its own requests are counted, on the hub and in
// workers, and those that its other half makes in the workers aren't among them.
func TestFloodBesideMultiKueue(t *testing.T) {
	o := DefaultFloodOptions()
	o.Jobs, o.Rounds, o.Singles, o.Resting, o.Quiet, o.Peer = 5, 1, 2, 0, 0, true
	result := flooded(t, 20*time.Minute, o, report.Markdown)
	p, mirrors := result.Peer, 0
	for _, c := range p.Requests {
		if c.Cluster == "workers" && c.Verb == "create" && c.Resource == "jobs" {
			mirrors += c.Requests - c.Failed
		}
	}
	if mirrors != o.Jobs || len(p.OfWorkers) == 0 {
		t.Errorf("%d mirrors for %d Jobs; requests of the workers' Kueues: %v", mirrors, o.Jobs, p.OfWorkers)
	}
	if p.Singles.Mirror.Count != o.Singles || p.AtOnce.Mirror.Count != o.Jobs || p.Floor == nil || p.PeakMemory == 0 {
		t.Errorf("not all was measured: %+v", p)
	}
}
