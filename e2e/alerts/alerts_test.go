package alerts

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/timestamp"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/template"
	"github.com/prometheus/prometheus/util/teststorage"
)

// step is the time between two samples, and between two looks at the rules.
const step = time.Minute

// Series are written as Prometheus' own tests do: "0+2x5" is 0 2 4 ... for 6 minutes, "_x5" five
// minutes of silence.
var scenarios = map[string]struct {
	alert  string
	series string
	// silentAt and firesAt are minutes; -1: never.
	silentAt, firesAt int
	// summary is a part of what is said; empty: anything.
	summary string
}{
	"a leader": {"JobferryNoLeader", `
		leader_election_master_status{name="jobferry-manager",pod="a"} 1x60
		leader_election_master_status{name="jobferry-manager",pod="b"} 0x60`, 60, -1, ""},
	"leader election goes on, but none leads": {"JobferryNoLeader", `
		leader_election_master_status{name="jobferry-manager",pod="a"} 1x20 0x60
		leader_election_master_status{name="jobferry-manager",pod="b"} 0x80`, 24, 27, ""},
	"a handover": {"JobferryNoLeader", `
		leader_election_master_status{name="jobferry-manager",pod="a"} 1x20 0x40
		leader_election_master_status{name="jobferry-manager",pod="b"} 0x22 1x40`, 60, -1, ""},
	"nobody is there": {"JobferryNoLeader", `up 1x60`, 4, 6, ""},

	"a worker out of touch": {"JobferryWorkerNotReady", `
		jobferry_worker_connected{worker="east"} 1x10 0x50
		jobferry_worker_connected{worker="west"} 1x60`, 15, 17, "Worker east isn't ready"},
	"a worker that the former leader lost": {"JobferryWorkerNotReady", `
		jobferry_worker_connected{worker="east",pod="a"} 0x60
		jobferry_worker_connected{worker="east",pod="b"} 1x60`, 60, -1, ""},
	"one of two": {"JobferryAllWorkersNotReady", `
		jobferry_worker_connected{worker="east"} 0x60
		jobferry_worker_connected{worker="west"} 1x60`, 60, -1, ""},
	"both": {"JobferryAllWorkersNotReady", `
		jobferry_worker_connected{worker="east"} 0x60
		jobferry_worker_connected{worker="west"} 1x10 0x50`, 15, 17, ""},
	"no workers at all": {"JobferryAllWorkersNotReady", `up 1x60`, 60, -1, ""},

	"out of touch, not lost": {"JobferryWorkerLost", `jobferry_worker_lost{worker="east"} 0x60`, 60, -1, ""},
	"lost": {"JobferryWorkerLost", `
		jobferry_worker_lost{worker="east"} 0x20 1x40
		jobferry_worker_lost{worker="west"} 0x60`, 20, 21, "Worker east counts as lost"},
	"the hub itself": {"JobferryHubIsolated", `jobferry_hub_isolated 0x20 1x40`, 20, 21, ""},
	"done twice": {"JobferryDuplicateCompletions", `
		jobferry_duplicate_completions_total{worker="east"} 0x20 2x90`, 20, 25, "Work of worker east"},

	"a token that is renewed": {"JobferryTokenExpires", `
		jobferry_worker_token_expiration_timestamp_seconds{worker="east"} 100000+60x90`, 90, -1, ""},
	"a token that isn't": {"JobferryTokenExpires", `
		jobferry_worker_token_expiration_timestamp_seconds{worker="east"} 86700x120`, 60, 70, "worker east expires"},
	"mirrors that go in time": {"JobferryMirrorsKept", `
		jobferry_unreleased_mirrors{worker="east",namespace="team",name="a"} 1x10 _x20`, 30, -1, ""},
	"mirrors that stay": {"JobferryMirrorsKept", `
		jobferry_unreleased_mirrors{worker="east",namespace="team",name="a"} 1x40
		jobferry_unreleased_mirrors{worker="east",namespace="team",name="b"} 1x40`, 10, 17, "Worker east keeps 2 Jobs"},

	"lost once": {"JobferryWorkerFlapping", `
		jobferry_worker_losses_total{worker="east"} 0x30 1x90`, 100, -1, ""},
	"lost every five minutes": {"JobferryWorkerFlapping", `
		jobferry_worker_losses_total{worker="east"} 0+0.2x120`, 20, 61, "worker east keeps breaking"},

	"a conflict now and then": {"JobferryWorkerRefusesRequests", `
		jobferry_worker_requests_total{worker="east",verb="get",code="200"} 0+100x60
		jobferry_worker_requests_total{worker="east",verb="patch",code="409"} 0+50x60
		jobferry_worker_requests_total{worker="east",verb="get",code="403"} 0+1x60`, 60, -1, ""},
	"a permission that was taken away": {"JobferryWorkerRefusesRequests", `
		jobferry_worker_requests_total{worker="east",verb="get",code="200"} 0+100x60
		jobferry_worker_requests_total{worker="east",verb="create",code="403"} 0+40x60`, 15, 20, "answers 403"},

	"a burst": {"JobferryWorkerThrottled", `
		jobferry_worker_throttled_seconds_total{worker="east"} 0x10 0+300x2 600x60`, 60, -1, ""},
	"a limit that is too low": {"JobferryWorkerThrottled", `
		jobferry_worker_throttled_seconds_total{worker="east"} 0+120x60`, 14, 30, "worker east"},

	"Jobs wait, and others are placed": {"JobferryJobsNotPlaced", `
		jobferry_jobs{worker="",state="Pending"} 5x180
		jobferry_placements_total{worker="east"} 0+1x180`, 180, -1, ""},
	"Jobs wait, and nothing moves": {"JobferryJobsNotPlaced", `
		jobferry_jobs{worker="",state="Pending"} 5x180
		jobferry_placements_total{worker="east"} 0+1x20 20x160`, 70, 85, "none has been placed"},
	"Jobs wait, and none ever was placed": {"JobferryJobsNotPlaced", `
		jobferry_jobs{worker="",state="Pending"} 5x180`, 29, 31, ""},
	"no Jobs": {"JobferryJobsNotPlaced", `
		jobferry_jobs{worker="east",state="Running"} 5x180`, 180, -1, ""},

	"statuses in a second": {"JobferryStatusLate", `
		jobferry_status_lag_seconds_bucket{worker="east",le="1"} 0+100x60
		jobferry_status_lag_seconds_bucket{worker="east",le="60"} 0+100x60
		jobferry_status_lag_seconds_bucket{worker="east",le="+Inf"} 0+100x60`, 60, -1, ""},
	"statuses in a minute": {"JobferryStatusLate", `
		jobferry_status_lag_seconds_bucket{worker="east",le="1"} 0+50x60
		jobferry_status_lag_seconds_bucket{worker="east",le="60"} 0+100x60
		jobferry_status_lag_seconds_bucket{worker="east",le="+Inf"} 0+100x60`, 14, 18, "worker east"},

	"a status that was mended": {"JobferryStatusRejected", `
		jobferry_status_rejected_total{rule="CompletionTime"} 0x10 1x80`, 90, -1, ""},
	"statuses that keep breaking a rule": {"JobferryStatusRejected", `
		jobferry_status_rejected_total{rule="CompletionTime"} 0+1x90`, 14, 18, "rule CompletionTime"},

	"a few names taken": {"JobferryJobsRefused", `
		jobferry_conflicts_total{worker="east",reason="NameTaken"} 0+1x5 5x100`, 100, -1, ""},
	"every Job refused": {"JobferryJobsRefused", `
		jobferry_conflicts_total{worker="east",reason="Refused"} 0+5x100`, 1, 30, "Worker east couldn't take"},

	"an error now and then": {"JobferryReconcileErrors", `
		controller_runtime_reconcile_errors_total{controller="job"} 0+1x60`, 60, -1, ""},
	"errors all the time": {"JobferryReconcileErrors", `
		controller_runtime_reconcile_errors_total{controller="job"} 0+60x60`, 14, 18, "controller job"},
}

// Every alert fires when it should, says what it's about, and is silent otherwise.
func TestAlerts(t *testing.T) {
	all := rules(t)
	fires := map[string]bool{}
	for name, s := range scenarios {
		t.Run(s.alert+"/"+name, func(t *testing.T) {
			r, found := all[s.alert]
			if !found {
				t.Fatalf("there is no alert %s", s.alert)
			}
			w := newWorld(t, s.series)
			if said := w.fires(r, s.silentAt); len(said) > 0 {
				t.Errorf("fires after %d minutes: %s", s.silentAt, said)
			}
			if s.firesAt < 0 {
				return
			}
			said := w.fires(r, s.firesAt)
			if len(said) != 1 || !strings.Contains(said[0], s.summary) {
				t.Errorf("after %d minutes it says %q, want one with %q", s.firesAt, said, s.summary)
			}
		})
		fires[s.alert] = fires[s.alert] || s.firesAt >= 0
	}
	for name := range all {
		if !fires[name] {
			t.Errorf("no scenario has %s fire", name)
		}
	}
}

// world is a Prometheus with series in it.
type world struct {
	t       *testing.T
	engine  *promql.Engine
	storage *teststorage.TestStorage
}

func newWorld(t *testing.T, series string) world {
	t.Helper()
	var lines []string
	for line := range strings.Lines(series) {
		if line = strings.TrimSpace(line); line != "" { // a blank line would end them
			lines = append(lines, "  "+line)
		}
	}
	storage := promqltest.LoadedStorage(t, "load "+model.Duration(step).String()+"\n"+strings.Join(lines, "\n"))
	t.Cleanup(func() {
		if err := storage.Close(); err != nil {
			t.Error(err)
		}
	})
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute, LookbackDelta: 5 * time.Minute})
	return world{t, engine, storage}
}

// fires returns what an alert says at a minute, once for each thing that it's about.
func (w world) fires(r rule, minute int) (said []string) {
	w.t.Helper()
	hold := time.Duration(0)
	if r.For != "" {
		parsed, err := model.ParseDuration(r.For)
		if err != nil {
			w.t.Fatal(err)
		}
		hold = time.Duration(parsed)
	}
	at := time.Duration(minute) * step
	active := w.ask(r.Expr, at)
	for since := at; since >= at-hold; since -= step {
		if since < 0 {
			return nil
		}
		still := map[string]bool{}
		for _, sample := range w.ask(r.Expr, since) {
			still[sample.Metric.String()] = true
		}
		active = slices.DeleteFunc(active, func(s promql.Sample) bool { return !still[s.Metric.String()] })
	}
	for _, sample := range active {
		said = append(said, w.expand(r, sample, at))
	}
	return said
}

func (w world) ask(query string, at time.Duration) promql.Vector {
	w.t.Helper()
	q, err := w.engine.NewInstantQuery(w.t.Context(), w.storage, nil, query, time.Unix(0, 0).Add(at))
	if err != nil {
		w.t.Fatal(err)
	}
	defer q.Close()
	answer, err := q.Exec(w.t.Context()).Vector()
	if err != nil {
		w.t.Fatal(err)
	}
	return slices.Clone(answer)
}

// expand fills in the alert's texts, as Prometheus does.
func (w world) expand(r rule, sample promql.Sample, at time.Duration) string {
	w.t.Helper()
	data := template.AlertTemplateData(sample.Metric.Map(), nil, "", sample)
	var texts []string
	for _, annotation := range []string{"summary", "description"} {
		text := "{{$labels := .Labels}}{{$value := .Value}}" + r.Annotations[annotation]
		expander := template.NewTemplateExpander(context.Background(), text, r.Alert, data,
			model.Time(timestamp.FromTime(time.Unix(0, 0).Add(at))),
			func(context.Context, string, time.Time) (promql.Vector, error) { return nil, nil }, &url.URL{}, nil)
		expanded, err := expander.Expand()
		if err != nil {
			w.t.Fatalf("%s of %s: %v", annotation, r.Alert, err)
		}
		if strings.Contains(expanded, "no value") || expanded == "" {
			w.t.Errorf("%s of %s is %q", annotation, r.Alert, expanded)
		}
		texts = append(texts, expanded)
	}
	return strings.Join(texts, "\n")
}

// The documentation lists the alerts, with their severity.
func TestAlertsAreDocumented(t *testing.T) {
	docs, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	all := rules(t)
	for name, r := range all {
		if !strings.Contains(string(docs), "| `"+name+"` | "+r.Labels["severity"]+" |") {
			t.Errorf("docs/reference/metrics.md has no line of %s with severity %s", name, r.Labels["severity"])
		}
	}
	if listed := strings.Count(string(docs), "| `Jobferry"); listed != len(all) {
		t.Errorf("docs/reference/metrics.md has %d alerts, the chart has %d", listed, len(all))
	}
}
