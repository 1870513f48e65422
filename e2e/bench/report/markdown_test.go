package report

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jobferry/jobferry/e2e/bench/audit"
	"github.com/jobferry/jobferry/e2e/bench/measure"
)

var update = flag.Bool("update", false, "write the golden files anew")

// good is a result that meets all goals.
func good() *Result {
	ms := func(p50, p90, p99 int) measure.Quantiles {
		return measure.Quantiles{
			Count: 100, P50: time.Duration(p50) * time.Millisecond, P90: time.Duration(p90) * time.Millisecond,
			P99: time.Duration(p99) * time.Millisecond,
		}
	}
	kind := func(cluster, verb, resource string) audit.Kind {
		return audit.Kind{Cluster: cluster, Verb: verb, Resource: resource}
	}
	return &Result{
		Jobs: 500, Resting: 10, Workers: 2, Machine: "2 cores (x86)",
		Rounds: []Round{{
			Floor: &Burst{Submitted: 2 * time.Second, Complete: 10 * time.Second, CPU: CPU{Clusters: map[string]time.Duration{"workers: etcd": 17500 * time.Millisecond}}},
			Bound: &Burst{Submitted: 2 * time.Second, Complete: 15500 * time.Millisecond, CPU: CPU{
				Clusters: map[string]time.Duration{"hub: etcd": 7 * time.Second, "workers: etcd": 17 * time.Second}, Bench: 2 * time.Second,
			}},
			Flood: Burst{Submitted: 3 * time.Second, Complete: 16 * time.Second, CPU: CPU{
				Clusters: map[string]time.Duration{"hub: etcd": 9 * time.Second, "workers: etcd": 17500 * time.Millisecond},
				Manager:  2400 * time.Millisecond, Bench: time.Second,
			}},
			Removal:   6 * time.Second,
			Overtaken: measure.Places{P50: 1, P99: 20, Most: 30},
			AtOnce:    Latencies{Mirror: ms(1700, 2000, 2500), Lag: ms(120, 300, 700)},
		}},
		Singles:    Latencies{Mirror: ms(17, 24, 31), Lag: ms(8, 14, 90)},
		PeakMemory: 116e6,
		Writes: []Write{{Name: "PATCH", CPU: CPU{Clusters: map[string]time.Duration{
			"hub: kube-apiserver": time.Second, "hub: etcd": 250 * time.Millisecond,
		}}}},
		Requests: []audit.Count{
			{Kind: kind("hub", "create", "events"), Requests: 500},
			{Kind: kind("hub", "patch", "jobs"), Requests: 450, Failed: 1},
			{Kind: kind("hub", "patch", "jobs/status"), Requests: 1050},
			{Kind: kind("workers", "create", "jobs"), Requests: 500},
			{Kind: kind("workers", "delete", "jobs"), Requests: 500},
		},
		Quiet:  time.Minute,
		Upkeep: []audit.Count{{Kind: kind("hub", "update", "leases"), Requests: 30}, {Kind: kind("workers", "get", "namespaces"), Requests: 12}},
	}
}

func TestMarkdown(t *testing.T) {
	missing := good()
	missing.QuietRequests = []audit.Count{{Kind: audit.Kind{Cluster: "hub", Verb: "patch", Resource: "jobs/status"}, Requests: 3}}
	missing.Rounds[0].Flood.Complete = 25 * time.Second
	missing.PeakMemory = 301e6
	short := good()
	short.Rounds[0].Floor, short.Quiet, short.Upkeep, short.Singles = nil, 0, nil, Latencies{}
	several := good()
	for _, took := range []time.Duration{21 * time.Second, 12 * time.Second} {
		round := several.Rounds[0]
		round.Flood.Complete = took
		several.Rounds = append(several.Rounds, round)
	}
	beside := good()
	beside.Peer = &Peer{
		Version: "v0.19.2", Rate: 1000, Floor: beside.Rounds[0].Floor, PeakMemory: 138e6, Singles: beside.Singles, AtOnce: beside.Rounds[0].AtOnce,
		Flood: Burst{Submitted: 3 * time.Second, Complete: 160 * time.Second, CPU: CPU{Clusters: map[string]time.Duration{
			"hub: etcd": 9 * time.Second, "hub: kueue": 32 * time.Second, "workers: kueue": 12 * time.Second, "workers: etcd": 20 * time.Second,
		}}},
		Requests:  []audit.Count{{Kind: audit.Kind{Cluster: "hub", Verb: "patch", Resource: "workloads/status"}, Requests: 23000}},
		OfWorkers: []audit.Count{{Kind: audit.Kind{Cluster: "workers", Verb: "create", Resource: "events"}, Requests: 3500}},
	}
	for name, result := range map[string]*Result{"good": good(), "missing": missing, "short": short, "several": several, "beside": beside} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			if err := Markdown(&out, result); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", name+".md")
			if *update {
				if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if out.String() != string(want) {
				t.Errorf("got\n%s\nwant\n%s", out.String(), want)
			}
		})
	}
}

func TestMissed(t *testing.T) {
	if missed := Missed(good()); len(missed) > 0 {
		t.Errorf("a good result misses %v", missed)
	}
	for want, spoil := range map[string]func(*Result){
		"requests of the manager per Job":      func(r *Result) { r.Requests[2].Requests = 1051 },
		"events per Job":                       func(r *Result) { r.Requests[0].Requests++ },
		"requests at rest":                     func(r *Result) { r.QuietRequests = []audit.Count{{Requests: 1}} },
		"peak memory of the manager":           func(r *Result) { r.PeakMemory = 300e6 + 1 },
		"CPU of the clusters, against":         func(r *Result) { r.Rounds[0].Flood.CPU.Clusters["hub: etcd"] *= 2 },
		"all Complete, against the lower":      func(r *Result) { r.Rounds[0].Bound.Complete = 15 * time.Second },
		"CPU of the manager per Job":           func(r *Result) { r.Rounds[0].Flood.CPU.Manager = 2501 * time.Millisecond },
		"places that a Job fell back":          func(r *Result) { r.Rounds[0].Overtaken.P99 = 129 },
		"create -> mirror, all at once":        func(r *Result) { r.Rounds[0].AtOnce.Mirror.P99 *= 2 },
		"create -> mirror, one at a time, p50": func(r *Result) { r.Singles.Mirror.P50 = 41 * time.Millisecond },
	} {
		r := good()
		spoil(r)
		if missed := Missed(r); len(missed) != 1 || !strings.HasPrefix(missed[0], want) {
			t.Errorf("want only %q, got %v", want, missed)
		}
	}
}
