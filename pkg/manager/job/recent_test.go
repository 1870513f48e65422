package job

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// future is a field that no types know, and its value.
const future = "future"

var gang = map[string]any{"gang": map[string]any{"minCount": int64(2)}}

// submitsWithFuture submits a Job with a recent field.
func (w *world) submitsWithFuture() {
	w.submits(aJob("train"))
	w.hasField(future, gang)
}

// requestsTo has the verbs of what the manager sends to a server about Jobs.
func (w *world) requestsTo(server string) *[]string {
	var all []string
	w.refuses = func(sent write) error {
		if sent.server == server && sent.verb != "list" && (sent.object == nil || sent.isOfJob()) {
			all = append(all, sent.verb)
		}
		return nil
	}
	return &all
}

func TestARecentFieldReachesTheMirror(t *testing.T) {
	w := newWorld(t)
	requests := w.requestsTo("a")
	w.submitsWithFuture()
	w.step(time.Second)
	if diff := cmp.Diff(any(gang), w.worker("a").fieldIn(future)); diff != "" {
		w.fail("the mirror has another field:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"create", "create"}, *requests); diff != "" {
		t.Errorf("not a dry run and a create:\n%s", diff)
	}
	w.worker("a").completes(4)
	w.step(time.Minute)
	w.deletes("Background")
	w.step(time.Minute)
	*requests = nil
	w.submitsWithFuture()
	w.step(time.Second)
	if diff := cmp.Diff([]string{"create"}, *requests); diff != "" {
		t.Errorf("the worker is asked again:\n%s", diff)
	}
}

// TestAPlainJobCostsNoFurtherRequest: of the hub, nothing is read.
func TestAPlainJobCostsNoFurtherRequest(t *testing.T) {
	for server, want := range map[string][]string{
		"hub": {"patch", "status", "status", "status", "status"},
		"a":   {"create"},
	} {
		w := newWorld(t)
		requests := w.requestsTo(server)
		w.submits(aJob("train"))
		w.step(10 * time.Second)
		w.worker("a").completes(4)
		w.step(time.Minute)
		if server == "hub" {
			*requests = slices.DeleteFunc(*requests, func(verb string) bool { return verb == "status" })
			want = want[:1]
		}
		if diff := cmp.Diff(want, *requests); diff != "" {
			t.Errorf("%s:\n%s", server, diff)
		}
	}
}

// TestAWorkerThatDropsAFieldIsPassedOver: for its age, or because it is switched off.
func TestAWorkerThatDropsAFieldIsPassedOver(t *testing.T) {
	for name, drops := range map[string]func(*apiServer){
		"older":        func(s *apiServer) { s.unknown = []string{future} },
		"switched off": func(s *apiServer) { s.switchedOff = []string{future} },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			drops(w.worker("a").api)
			w.submitsWithFuture()
			w.step(time.Second)
			if got := w.worker("b").fieldIn(future); got == nil || w.worker("a").api.created > 0 {
				w.fail("b has %v; %d mirrors were made in a", got, w.worker("a").api.created)
			}
			if !strings.Contains(strings.Join(w.events, "\n"), "Worker a: drops spec.future: its API server (v1.36.0)") {
				w.fail("no event says why")
			}
			other := aJob("other")
			w.submits(other)
			w.step(time.Second)
			if hubstate.Get(w.hub.jobs[keyOf(other)], hubstate.Cluster) != "a" {
				w.fail("a Job without the field is kept from a")
			}
		})
	}
}

// TestAJobThatNoWorkerKeepsWaits, says why, and runs when a worker is upgraded.
func TestAJobThatNoWorkerKeepsWaits(t *testing.T) {
	w := newWorld(t)
	w.worker("a").api.unknown, w.worker("b").api.switchedOff = []string{future}, []string{future}
	w.submitsWithFuture()
	w.step(time.Minute)
	if text := strings.Join(w.events, "\n"); !strings.Contains(text, v1alpha1.EventPending) ||
		!strings.Contains(text, "0/2 clusters available: 2 dropping spec.future") {
		w.fail("the Job doesn't say that no worker keeps the field")
	}
	before := w.writes
	w.step(time.Hour)
	if n := w.writes - before; n > 12 {
		w.fail("%d writes in an hour", n)
	}
	if n := w.worker("a").api.created + w.worker("b").api.created; n > 0 {
		w.fail("%d mirrors were made", n)
	}
	w.worker("b").api.switchedOff, w.worker("b").view.Version = nil, "v1.37.0"
	w.triggers.WorkerChanged("b")
	w.step(6 * time.Minute)
	if w.worker("b").fieldIn(future) == nil {
		w.fail("the Job still waits")
	}
}

// TestServersOfAWorkerThatDiffer: another API server answers the create than the dry run.
func TestServersOfAWorkerThatDiffer(t *testing.T) {
	for name, drops := range map[string]func(*apiServer){
		"older":        func(s *apiServer) { s.unknown = []string{future} },
		"switched off": func(s *apiServer) { s.switchedOff = []string{future} },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			a := w.worker("a")
			w.answers = func(sent write) {
				if sent.server == "a" && sent.verb == "create" {
					drops(a.api)
				}
			}
			w.submitsWithFuture()
			w.step(time.Second)
			if a.api.jobs[jobKey] != nil || w.worker("b").fieldIn(future) == nil {
				w.fail("the mirror without the field stays in a, or none is in b")
			}
		})
	}
}

func TestARecentFieldThatIsEdited(t *testing.T) {
	edited := map[string]any{"gang": map[string]any{"minCount": int64(1)}}
	t.Run("while the Job runs", func(t *testing.T) {
		w := newWorld(t)
		w.submitsWithFuture()
		w.step(time.Second)
		w.hasField(future, edited)
		w.step(time.Second)
		if diff := cmp.Diff(any(edited), w.worker("a").fieldIn(future)); diff != "" || w.worker("a").api.created != 1 {
			w.fail("%d mirrors; the last has another field:\n%s", w.worker("a").api.created, diff)
		}
	})
	t.Run("for the first time", func(t *testing.T) {
		w := newWorld(t)
		w.submits(aJob("train"))
		w.step(time.Second)
		w.hasField(future, gang)
		w.step(time.Second)
		if w.worker("a").fieldIn(future) == nil {
			w.fail("the mirror hasn't the field")
		}
	})
	t.Run("where the worker refuses that", func(t *testing.T) {
		w := newWorld(t)
		w.submitsWithFuture()
		w.step(time.Second)
		tries := 0
		w.refuses = func(sent write) error {
			if sent.server == "a" && sent.verb == "patch" {
				tries++
				return apierrors.NewInvalid(jobsResource.WithVersion("v1").GroupVersion().WithKind("Job").GroupKind(), "train", nil)
			}
			return nil
		}
		w.hasField(future, edited)
		w.step(4 * time.Minute)
		if tries != 1 || !strings.Contains(strings.Join(w.events, "\n"), v1alpha1.EventDrift+": Worker a: spec.future: refused") {
			w.fail("%d tries", tries)
		}
	})
	t.Run("while the Job is suspended", func(t *testing.T) {
		w := newWorld(t)
		w.submitsWithFuture()
		w.step(time.Second)
		w.suspends()
		w.step(time.Minute)
		w.hasField(future, edited)
		w.step(time.Minute)
		w.resumes()
		w.step(time.Minute)
		if diff := cmp.Diff(any(edited), w.worker("a").fieldIn(future)); diff != "" || w.worker("a").api.created != 2 {
			w.fail("%d mirrors; the last has another field:\n%s", w.worker("a").api.created, diff)
		}
	})
}

// TestAManagerThatStartsReadsEditedJobsOnly, once each.
func TestAManagerThatStartsReadsEditedJobsOnly(t *testing.T) {
	for _, edits := range []int{0, 1} {
		t.Run(fmt.Sprint(edits), func(t *testing.T) {
			w := newWorld(t)
			w.submits(aJob("train"))
			w.step(time.Second)
			for range edits {
				w.hasField("parallelism", int64(1))
			}
			w.step(time.Second)
			requests := w.requestsTo("hub")
			w.start()
			w.step(time.Minute)
			if reads := len(slices.DeleteFunc(*requests, func(verb string) bool { return verb != "get" })); reads != edits {
				w.fail("%d reads of the hub", reads)
			}
		})
	}
}

// TestALargeJobWithARecentField is refused with the way out; without the field, it runs.
func TestALargeJobWithARecentField(t *testing.T) {
	w := newWorld(t)
	large := aJob("train", func(job *batchv1.Job) {
		job.Spec.Template.Spec.Containers[0].Args = make([]string, maxWholeValues)
	})
	w.submits(large)
	w.hasField(future, gang)
	w.step(time.Second)
	if !strings.Contains(strings.Join(w.events, "\n"), "that has the field spec.future, but one of 6000 at most") ||
		w.worker("a").api.created+w.worker("b").api.created > 0 {
		w.fail("the Job isn't refused")
	}
	w.hasField(future, nil)
	w.step(6 * time.Minute)
	if w.worker("a").api.created+w.worker("b").api.created != 1 {
		w.fail("the Job doesn't run without the field")
	}
}

// TestADividedJobKeepsItsFields in each of its mirrors.
func TestADividedJobKeepsItsFields(t *testing.T) {
	w := newWorld(t)
	w.submits(divisible(20, 12))
	w.hasField(future, gang)
	w.step(time.Second)
	for _, name := range []string{"a", "b"} {
		if diff := cmp.Diff(any(gang), w.worker(name).fieldIn(future)); diff != "" {
			w.fail("worker %s:\n%s", name, diff)
		}
	}
}

// TestAMovedJobKeepsItsFields, as does one that continues where it was.
func TestAMovedJobKeepsItsFields(t *testing.T) {
	w := newWorld(t)
	w.submitsWithFuture()
	w.step(10 * time.Second)
	w.worker("a").completes(1)
	w.step(10 * time.Second)
	w.worker("a").drains(true)
	w.step(time.Minute)
	if diff := cmp.Diff(any(gang), w.worker("b").fieldIn(future)); diff != "" {
		w.fail("%s", diff)
	}
}

// TestACostlyAnswerWithoutAType: whatever kind a worker says that its answer is, no quantity that
// takes long to compute with is made of it.
func TestACostlyAnswerWithoutAType(t *testing.T) {
	worker := &fakeWorker{api: &apiServer{name: "a"}}
	for quantity, want := range map[string]bool{"100m": true, "1e9999999": false, "123456789012345678901e1000000": false} {
		for _, kind := range []string{"Job", "ConfigMap", "Foreign"} {
			answer := &unstructured.Unstructured{Object: toTree(aJob("train"))}
			answer.SetKind(kind)
			containers := []any{map[string]any{"resources": map[string]any{"limits": map[string]any{"cpu": quantity}}}}
			if err := unstructured.SetNestedSlice(answer.Object, containers, "spec", "template", "spec", "containers"); err != nil {
				t.Fatal(err)
			}
			if _, err := (&Reconciler{}).typed(worker, answer); (err == nil) != want {
				t.Errorf("%s of a %s: %v", quantity, kind, err)
			}
		}
	}
}
