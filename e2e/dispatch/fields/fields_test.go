package fields_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/binaries"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

var (
	seed  = flag.Uint64("seed", 1, "of the random Jobs")
	count = flag.Int("jobs", 25, "number of random Jobs")
)

const (
	hub = "hub"
	// plain is a worker as it is shipped, gated one with a feature gate of the hub.
	plain, gated = "plain", "gated"
	// stopSignals is a gate that all releases have, off in most of them.
	stopSignals = "ContainerStopSignals"
)

func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "12"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	rigtest.Main(m,
		rig.Options{Name: hub, Release: hubRelease, APIServerFlags: gates(hubRelease, true)},
		rig.Options{Name: plain, Release: workerRelease, Nodes: []rig.Nodes{{Count: 1}}, APIServerFlags: gates(workerRelease, false)},
		rig.Options{Name: gated, Release: workerRelease, Nodes: []rig.Nodes{{Count: 1}}, APIServerFlags: gates(workerRelease, true)},
	)
}

// By default the hub is two releases newer than all workers that tests run without being asked to.
var hubRelease, workerRelease = binaries.Hub(newest), binaries.Worker(binaries.Oldest)

// newest is the first release with spec.scheduling.
const newest binaries.Release = "1.37"

// gates switches the fields of this test on or off, which are off in a release as it is shipped.
func gates(release binaries.Release, on bool) []string {
	flags := []string{fmt.Sprintf("--feature-gates=%s=%v", stopSignals, on)}
	if release < newest {
		return flags
	}
	flags[0] += fmt.Sprintf(",GenericWorkload=%[1]v,WorkloadWithJob=%[1]v", on)
	if on {
		flags = append(flags, "--runtime-config=scheduling.k8s.io/v1beta1=true")
	}
	return flags
}

// TestWorkersThatDropAField are passed over; the Job waits for one that keeps it, and says so. It's
// the first test, as it wants the one worker registered after the other.
func TestWorkersThatDropAField(t *testing.T) {
	const path = "spec.template.spec.containers[*].lifecycle.stopSignal"
	f := ferrytest.ForHub(t, hub)
	f.RunManager()
	f.Register(plain)
	f.Submit("job", stopSignal, noPods)
	f.EventUntil("job", v1alpha1.EventMirrorRefused, "drops "+path)
	f.EventUntil("job", v1alpha1.EventPending, "0/1 clusters available: 1 dropping "+path)
	f.Register(gated)
	mirror := f.MirrorUntil(gated, "job", func(*batchv1.Job) bool { return true })
	if mirror.Spec.Template.Spec.Containers[0].Lifecycle.StopSignal == nil {
		t.Error("the mirror hasn't the field")
	}
	f.MirrorGone(plain, "job")
	f.Submit("other", noPods, onlyOn(plain))
	f.MirrorUntil(plain, "other", func(*batchv1.Job) bool { return true })
}

// TestNoFieldIsLost has random Jobs mirrored to a worker that keeps all that they have.
func TestNoFieldIsLost(t *testing.T) {
	f := ferrytest.ForHub(t, hub)
	f.RunManager()
	f.Register(gated)
	random := rand.New(rand.NewPCG(*seed, 0))
	var names []string
	for i := range *count {
		name := fmt.Sprintf("job-%d", i)
		f.Submit(name, append(someOf(random), rigtest.Indexed(3), noPods, onlyOn(gated))...)
		names = append(names, name)
	}
	for _, name := range names {
		f.MirrorUntil(gated, name, func(*batchv1.Job) bool { return true })
		sent, got := specIn(t, f, f.Hub, name), specIn(t, f, f.Cluster(gated), name)
		lost := slices.DeleteFunc(notIn("spec", sent, got), ofTheHub)
		if len(lost) > 0 {
			t.Errorf("%s (seed %d) has lost %v", name, *seed, lost)
		}
	}
}

// TestFieldOfANewerRelease is one that workers don't know, or have switched off.
func TestFieldOfANewerRelease(t *testing.T) {
	if hubRelease < newest {
		t.Skipf("a hub of release %s has no spec.scheduling", hubRelease)
	}
	f := ferrytest.ForHub(t, hub)
	f.RunManager()
	f.Register(plain, gated)
	f.Submit("job", gang)
	if workerRelease < newest {
		f.EventUntil("job", v1alpha1.EventPending, "0/2 clusters available: 2 dropping spec.scheduling")
		f.MirrorGone(gated, "job")
	} else if f.MirrorUntil(gated, "job", func(*batchv1.Job) bool { return true }).Spec.Scheduling == nil {
		t.Error("the mirror hasn't the field")
	}
	f.MirrorGone(plain, "job")
}

// specIn is the spec of a Job as an API server sends it.
func specIn(t *testing.T, f *ferrytest.Ferry, c *rig.Cluster, name string) any {
	t.Helper()
	data, err := c.Client().BatchV1().RESTClient().Get().Namespace(f.NS).Resource("jobs").Name(name).
		SetHeader("Accept", "application/json").DoRaw(f.Context())
	if err != nil {
		t.Fatal(err)
	}
	var job map[string]any
	if err := json.Unmarshal(data, &job); err != nil {
		t.Fatal(err)
	}
	return job["spec"]
}

// ofTheHub says which fields a mirror has otherwise.
func ofTheHub(path string) bool {
	for _, field := range []string{"managedBy", "ttlSecondsAfterFinished", "selector", "manualSelector", "template.metadata.labels."} {
		if strings.HasPrefix(path, "spec."+field) {
			return true
		}
	}
	return false
}

// notIn returns the paths of values that another tree hasn't.
func notIn(path string, value, other any) (lost []string) {
	switch value := value.(type) {
	case map[string]any:
		object, _ := other.(map[string]any)
		for name, below := range value {
			lost = append(lost, notIn(path+"."+name, below, object[name])...)
		}
	case []any:
		list, _ := other.([]any)
		if len(list) != len(value) {
			return []string{path}
		}
		for i := range value {
			lost = append(lost, notIn(fmt.Sprintf("%s[%d]", path, i), value[i], list[i])...)
		}
	default:
		if !reflect.DeepEqual(value, other) {
			lost = []string{path}
		}
	}
	return lost
}
