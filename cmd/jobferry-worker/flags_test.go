package main

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/jobferry/jobferry/pkg/util/process"
	"github.com/jobferry/jobferry/pkg/worker"
	"github.com/jobferry/jobferry/pkg/worker/plan"
)

// parse returns what the flags set for each group of Jobs.
func parse(t *testing.T, args ...string) []worker.Options {
	t.Helper()
	f, set := defaultJobFlags(), pflag.NewFlagSet("test", pflag.ContinueOnError)
	f.add(set)
	if err := set.Parse(args); err != nil {
		t.Fatal(err)
	}
	options, err := f.workerOptions("ns")
	if err != nil {
		t.Fatal(err)
	}
	return options
}

// Each option of the library has a flag, and the flag sets it.
func TestEachOptionHasAFlag(t *testing.T) {
	got := parse(t,
		"--managed-by=a/b", "--managed-by=", "--tracking-finalizer=c/d", "--concurrent-job-syncs=7",
		"--pod-failure-backoff=2s", "--max-pod-failure-backoff=3m", "--sync-batch-period=4s",
		"--max-uncounted-pods=8", "--max-pod-create-delete-per-sync=9", "--ttl=false", "--metrics-prefix=my_", "--fence-after=3m")[0]
	want := worker.Options{
		ManagedBy: []string{"a/b", ""}, Concurrency: 7, MetricsPrefix: "my_", FenceAfter: 3 * time.Minute, Namespace: "ns",
		Options: plan.Options{
			TrackingFinalizer: "c/d", PodFailureBackoff: 2 * time.Second, MaxPodFailureBackoff: 3 * time.Minute,
			SyncBatchPeriod: 4 * time.Second, MaxUncountedPods: 8, MaxPodCreateDeletePerSync: 9,
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestDropIn(t *testing.T) {
	all := parse(t, "--drop-in", "--concurrent-job-syncs=9")
	if o := all[0]; len(all) != 1 || o.TrackingFinalizer != "batch.kubernetes.io/job-tracking" || len(o.ManagedBy) != 2 || o.Concurrency != 9 || !o.TTL || o.MetricsPrefix != "-" {
		t.Errorf("options %+v", o)
	}
	if o := parse(t, "--drop-in", "--metrics-prefix=my_")[0]; o.MetricsPrefix != "my_" {
		t.Errorf("prefix %q", o.MetricsPrefix)
	}
}

// One process can run the built-in's Jobs and others. Each have their own finalizer and names of
// metrics, and the built-in's TTL is for all.
func TestDropInAndOthers(t *testing.T) {
	all := parse(t, "--drop-in", "--managed-by=jobferry.dev/worker", "--fence-after=3m")
	if len(all) != 2 || !slices.Equal(all[1].ManagedBy, []string{"jobferry.dev/worker"}) {
		t.Fatalf("options %+v", all)
	}
	dropIn, own := all[0], all[1]
	if dropIn.TrackingFinalizer != "batch.kubernetes.io/job-tracking" || dropIn.MetricsPrefix != "-" || !dropIn.TTL || dropIn.FenceAfter >= 0 {
		t.Errorf("drop-in %+v", dropIn)
	}
	if own.TrackingFinalizer != "jobferry.dev/job-tracking" || own.MetricsPrefix != "jobferry_" || own.TTL || own.FenceAfter != 3*time.Minute {
		t.Errorf("others %+v", own)
	}
	if own := parse(t, "--drop-in", "--managed-by=a/b", "--tracking-finalizer=c/d")[1]; own.TrackingFinalizer != "c/d" {
		t.Errorf("finalizer %s", own.TrackingFinalizer)
	}
}

// Each error is one line.
func TestErrorsAreOneLine(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for name, row := range map[string]struct {
		args []string
		want string
	}{
		"unknown flag":         {[]string{"--nope"}, "unknown flag: --nope"},
		"an argument":          {[]string{"now"}, `unexpected argument "now"`},
		"bad duration":         {[]string{"--sync-batch-period=soon"}, "invalid argument"},
		"bad options":          {[]string{"--concurrent-job-syncs=-1", "--max-uncounted-pods=-1"}, "; "},
		"drop-in and the same": {[]string{"--drop-in", "--managed-by="}, "name others in --managed-by"},
		"drop-in's finalizer":  {[]string{"--drop-in", "--tracking-finalizer=a/b"}, "--drop-in sets"},
		"no kubeconfig":        {nil, "set --kubeconfig or $KUBECONFIG"},
		"kubeconfig not there": {[]string{"--kubeconfig=" + filepath.Join(t.TempDir(), "none")}, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			err := run(t.Context(), row.args)
			if err == nil {
				t.Fatal("no error")
			}
			if line := process.OneLine(err); !strings.Contains(line, row.want) || strings.Contains(line, "\n") {
				t.Errorf("got %q, want %q", line, row.want)
			}
		})
	}
}
