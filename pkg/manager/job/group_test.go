package job

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/group"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// inGroup has a Job belong to a group.
func inGroup(name string) func(*batchv1.Job) { return annotated(v1alpha1.AnnotationGroup, name) }

// ofOwner has a Job be controlled by an object.
func ofOwner(kind, apiVersion, name string) func(*batchv1.Job) {
	return func(job *batchv1.Job) {
		job.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: apiVersion, Kind: kind, Name: name, UID: types.UID("uid-of-" + name), Controller: ptr.To(true),
		}}
	}
}

// trio are the three Jobs of a group.
var trio = []string{"driver", "worker-0", "worker-1"}

// submitsTrio submits them, of so many Pods each.
func (w *world) submitsTrio(each int32) {
	w.Helper()
	for _, name := range trio {
		w.submits(aJob(name, pods(each), inGroup("pair")))
	}
	w.step(time.Second)
}

// runsIn are the workers in which a Job of the trio runs that the manager can reach.
func (w *world) runsIn() []string {
	in := map[string]bool{}
	for name, v := range w.workers {
		for _, job := range trio {
			if m := v.api.jobs[inTeam(job)]; m != nil && !v.isAway() && (v.runs(inTeam(job)) || m.Status.Active > 0) {
				in[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(in))
}

// watchesGroup holds at each write that the trio doesn't run in two workers.
func (w *world) watchesGroup() {
	w.answers = func(sent write) {
		if in := w.runsIn(); len(in) > 1 {
			w.fail("after %s the group runs in %v", sent.words, in)
		}
	}
}

func (w *world) wantTrioOn(worker string) {
	w.Helper()
	want := map[string]string{}
	for _, name := range trio {
		want[name] = worker
	}
	w.wantPlaced(want)
}

func asJSON(e any) string {
	text, err := json.Marshal(e)
	return fmt.Sprint(string(text), err)
}

// The Jobs of a group go to one worker, also if the first of them would fit elsewhere.
func TestGroupIsPlacedAsOne(t *testing.T) {
	for what, of := range map[string]func(*batchv1.Job){
		"a name": inGroup("pair"), "a controller": ofOwner("JobSet", "jobset.x-k8s.io/v1alpha2", "pair"),
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			w.watchesGroup()
			w.queues(aJob("other", pods(4))) // on a, which has 4 CPUs left
			w.worker("b").view.Spec.Cost = v1alpha1.Cost{"cpu": resource.MustParse("1")}
			for _, name := range trio {
				w.submits(aJob(name, pods(2), of))
			}
			w.queues(aJob("alone", pods(4)))
			w.wantPlaced(map[string]string{"other": "a", "alone": "a"})
			w.wantTrioOn("b")
		})
	}
}

// The room of the whole group is kept for it: those who come between its Jobs don't take it.
func TestGroupHoldsRoom(t *testing.T) {
	w := newWorld(t)
	w.worker("b").drains(true)
	w.queues(aJob("full", pods(8)))
	w.submitsTrio(2)
	w.queues(aJob("small", pods(2)), aJob("smaller", pods(1)))
	w.wantTrioOn("")
	w.ends("full")
	w.wantTrioOn("a")
	w.wantPlaced(map[string]string{"small": "a", "smaller": ""})
}

// A Job of a kind that isn't listed, or of no group, goes its own way.
func TestNoGroup(t *testing.T) {
	w := newWorld(t)
	w.worker("b").view.Spec.Cost = v1alpha1.Cost{"cpu": resource.MustParse("1")}
	w.queues(aJob("other", pods(4)),
		aJob("x", pods(4), ofOwner("RayJob", "ray.io/v1", "pair")), aJob("y", pods(4), ofOwner("RayJob", "ray.io/v1", "pair")))
	w.wantPlaced(map[string]string{"x": "a", "y": "b"})
}

// The worker of a group is drained: all go to the same other one, and none starts there before all
// have left.
func TestGroupMoves(t *testing.T) {
	w := newWorld(t)
	w.watchesGroup()
	w.submitsTrio(2)
	w.wantTrioOn("a")
	w.worker("a").drains(true)
	w.step(time.Minute)
	w.wantTrioOn("b")
	if in := w.runsIn(); !slices.Equal(in, []string{"b"}) {
		w.fail("runs in %v", in)
	}
	w.ends(trio...)
}

// A worker that has room for some of a group, but not for all, gets none of it.
func TestGroupStaysTogether(t *testing.T) {
	w := newWorld(t)
	w.watchesGroup()
	w.worker("b").view.Spec.Cost = v1alpha1.Cost{"cpu": resource.MustParse("1")}
	w.submitsTrio(2)
	w.queues(aJob("other", pods(2)), aJob("more", pods(4)))
	w.wantPlaced(map[string]string{"other": "a", "more": "b"})
	w.worker("a").drains(true)
	w.step(time.Hour)
	w.wantTrioOn("a")
	w.ends("more")
	w.step(time.Minute)
	w.wantTrioOn("b")
}

// The worker of a group is lost: all continue in the same other one.
func TestGroupLeavesALostWorker(t *testing.T) {
	w := newWorld(t)
	w.watchesGroup()
	w.worker("a").fenced = true
	w.submitsTrio(2)
	w.worker("a").isLost()
	w.wantTrioOn("b")
	w.answers = nil // until the manager has stopped what is there, the fence has
	w.worker("a").isBack()
	w.step(time.Minute)
	w.wantTrioOn("b")
	w.ends(trio...)
}

// Whatever write is the last of a manager while a group moves, whether or not it arrives, or
// conflicts with somebody else's: the group never runs in two workers, and ends up in one.
func TestGroupMovesThroughKills(t *testing.T) {
	move := func(w *world) {
		w.watchesGroup()
		w.submitsTrio(2)
		w.worker("a").drains(true)
		w.step(time.Minute)
		w.worker("a").drains(false)
		w.worker("b").drains(true)
		w.step(10 * time.Minute)
	}
	want := newWorld(t)
	move(want)
	want.wantTrioOn("a")
	for n := 1; n <= want.writes; n++ {
		for _, at := range []kill{{at: n}, {at: n, done: true}, {at: n, conflicts: true}} {
			w := newWorld(t)
			w.kill = at
			move(w)
			on := w.placedOn("driver")
			w.wantTrioOn(on)
			if in := w.runsIn(); on == "" || !slices.Equal(in, []string{on}) {
				w.fail("%+v: placed on %q, runs in %v", at, on, in)
			}
		}
	}
}

// Two managers that didn't know of one another have placed two Jobs of a group: the newer placement
// counts, and nothing runs in both workers.
func TestGroupInTwoWorkersComesTogether(t *testing.T) {
	w := newWorld(t)
	w.worker("b").drains(true)
	w.submits(aJob("driver", pods(2), inGroup("pair")))
	w.step(time.Minute)
	w.worker("b").drains(false)
	w.hub.change(inTeam("driver"), func(job *batchv1.Job) { delete(job.Annotations, v1alpha1.AnnotationGroup) })
	w.step(time.Second)
	w.worker("a").view.Spec.Cordoned = true
	w.submits(aJob("worker-0", pods(2), inGroup("pair")))
	w.step(time.Minute)
	w.wantPlaced(map[string]string{"driver": "a", "worker-0": "b"})
	// they run in two workers, as a manager that doesn't know groups has left them
	w.hub.change(inTeam("driver"), func(job *batchv1.Job) { job.Annotations = map[string]string{v1alpha1.AnnotationGroup: "pair"} })
	w.step(time.Minute)
	w.wantPlaced(map[string]string{"driver": "b", "worker-0": "b"})
}

// A Job that joins a group goes where it runs, or waits for that worker.
func TestJobJoinsItsGroup(t *testing.T) {
	w := newWorld(t)
	w.watchesGroup()
	w.worker("b").view.Spec.Cost = v1alpha1.Cost{"cpu": resource.MustParse("1")}
	w.submitsTrio(2)
	w.queues(aJob("other", pods(2)), aJob("joins", pods(2), inGroup("pair")))
	w.wantTrioOn("a")
	w.wantPlaced(map[string]string{"other": "a", "joins": ""})
	wants := `not where group \"pair\" runs (a)`
	if e, err := w.Explain(w.Context(), inTeam("joins")); err != nil || !strings.Contains(asJSON(e), wants) {
		w.fail("%+v, %v: want %q", e, err, wants)
	}
	w.ends("other")
	w.wantPlaced(map[string]string{"joins": "a"})
}

// All Jobs of a group have finished: a new one goes there if that worker takes Jobs.
func TestGroupThatHasFinished(t *testing.T) {
	w := newWorld(t)
	w.worker("a").drains(true)
	w.queues(aJob("step-1", pods(2), inGroup("pair")))
	w.worker("a").drains(false)
	w.ends("step-1")
	w.queues(aJob("step-2", pods(2), inGroup("pair")))
	w.wantPlaced(map[string]string{"step-1": "b", "step-2": "b"})
	w.ends("step-2")
	w.worker("b").drains(true)
	w.queues(aJob("step-3", pods(2), inGroup("pair")))
	w.wantPlaced(map[string]string{"step-3": "a"})
}

// What the Jobs of a group want of workers holds for all, and a contradiction is told.
func TestGroupsWishes(t *testing.T) {
	w := newWorld(t)
	w.worker("a").view.Labels, w.worker("b").view.Labels = map[string]string{"gpu": "no"}, map[string]string{"gpu": "yes"}
	w.submits(aJob("driver", pods(1), inGroup("pair")))
	w.submits(aJob("worker-0", pods(1), inGroup("pair"), annotated(v1alpha1.AnnotationClusterSelector, "gpu=yes")))
	w.step(time.Second)
	w.wantPlaced(map[string]string{"driver": "b", "worker-0": "b"})
	w.submits(aJob("one", pods(1), inGroup("odd"), annotated(v1alpha1.AnnotationClusterSelector, "gpu=no")))
	w.submits(aJob("two", pods(1), inGroup("odd"), annotated(v1alpha1.AnnotationClusterSelector, "gpu=yes")))
	w.step(time.Minute)
	w.wantPlaced(map[string]string{"one": "", "two": ""})
	wants := "didn't match the cluster selector of Job two of its group"
	if e, err := w.Explain(w.Context(), inTeam("one")); err != nil || !strings.Contains(asJSON(e), wants) {
		w.fail("%+v, %v: want %q", e, err, wants)
	}
}

// What can't be in a group waits, and says so.
func TestNotInAGroup(t *testing.T) {
	for what, change := range map[string]func(*batchv1.Job){
		"several workers": annotated(v1alpha1.AnnotationMaxClusters, "All"),
		"JobSet's domain": annotated(group.AnnotationExclusiveTopology, "rack"),
		"no name":         annotated(v1alpha1.AnnotationGroup, "No Name"),
	} {
		w := newWorld(t)
		w.submits(aJob("driver", pods(2), inGroup("pair"), func(job *batchv1.Job) { job.Spec.CompletionMode = ptr.To(batchv1.IndexedCompletion) }, change))
		w.step(time.Minute)
		w.wantPlaced(map[string]string{"driver": ""})
		if !slices.Contains(reasons(w.events), v1alpha1.EventInvalid) {
			w.fail("%s: events %q", what, w.events)
		}
	}
}

// A Job that asks for its group goes: another one asks.
func TestAskerGoes(t *testing.T) {
	w := newFullWorld(t)
	w.submitsTrio(2)
	w.wantTrioOn("")
	for r := range w.store.groups.byID[group.ID{Namespace: jobKey.Namespace, Name: "pair"}].records {
		if r.member.of.asker == r {
			if err := w.hub.delete(r.key, client.DeleteOptions{}); err != nil {
				w.Fatal(err)
			}
			break
		}
	}
	w.ends("small-1", "small-2", "small-3", "small-4")
	left := 0
	for _, name := range trio {
		if w.hub.jobs[inTeam(name)] != nil {
			left++
			w.wantPlaced(map[string]string{name: "a"})
		}
	}
	if left != 2 {
		w.fail("%d Jobs are left", left)
	}
}

// What is kept of a group goes with its Jobs.
func TestGroupIsForgotten(t *testing.T) {
	w := newWorld(t)
	w.submitsTrio(2)
	for _, name := range trio {
		if err := w.hub.delete(inTeam(name), client.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}); err != nil {
			w.Fatal(err)
		}
	}
	w.step(time.Minute)
	if len(w.store.groups.byID) != 0 || len(w.store.groups.concerned) != 0 || len(w.store.groups.over) != 0 {
		w.fail("left: %+v", w.store.groups)
	}
	w.queues(aJob("next", pods(8)))
	w.wantPlaced(map[string]string{"next": "a"})
	if m := w.worker("a").api.jobs[inTeam("next")]; m == nil || mirror.Suspended(m) {
		w.fail("no room is free")
	}
}

// One Job of a group can't be in one worker, and one not in the other: the group doesn't go to and
// fro between them.
func TestGroupThatNoWorkerTakesWhole(t *testing.T) {
	w := newWorld(t)
	w.watchesGroup()
	w.refuses = func(sent write) error {
		if sent.verb != "create" {
			return nil
		}
		if name := sent.object.GetName(); sent.server == "a" && name == "driver" || sent.server == "b" && name == "worker-0" {
			return apierrors.NewForbidden(schema.GroupResource{Group: "batch", Resource: "jobs"}, name, errors.New("by a policy"))
		}
		return nil
	}
	w.submitsTrio(1)
	w.step(time.Hour)
	moves := 0
	for _, event := range w.events {
		if strings.Contains(event, v1alpha1.EventMoved) {
			moves++
		}
	}
	if moves > 60 { // each tells where to go again after 5 minutes
		w.fail("%d moves within an hour", moves)
	}
}

// aJobSet is one as the hub's API server sends it: a driver of 2 Pods, and two workers of 2 Pods
// each.
const aJobSet = `{"metadata":{"namespace":"team","name":"pair","uid":"uid-of-pair"},"spec":{"replicatedJobs":[
	{"name":"driver","template":{"spec":{"parallelism":2,"completions":2,"template":{"spec":{"containers":[{"name":"main","resources":{"requests":{"cpu":"1"}}}]}}}}},
	{"name":"workers","replicas":2,"template":{"spec":{"parallelism":2,"completions":2,"template":{"spec":{"containers":[{"name":"main","resources":{"requests":{"cpu":"1"}}}]}}}}}]}}`

var ofJobSet = ofOwner("JobSet", "jobset.x-k8s.io/v1alpha2", "pair")

// The whole JobSet has its room from the first Job on, also while none of its Jobs runs between two
// stages; a next stage that comes too late for that is placed as one, where there is room for it.
func TestJobSetInStages(t *testing.T) {
	for name, c := range map[string]struct {
		after time.Duration
		on    string
	}{"at once": {time.Second, "a"}, "late": {time.Hour, "b"}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.watchesGroup()
			w.worker("b").view.Spec.Cost = v1alpha1.Cost{"cpu": resource.MustParse("1")}
			w.jobSets = map[string]string{"pair": aJobSet}
			w.queues(aJob("pair-driver-0", pods(2), ofJobSet), aJob("other", pods(2)), aJob("more", pods(2)))
			w.wantPlaced(map[string]string{"pair-driver-0": "a", "other": "a", "more": "b"})
			w.ends("pair-driver-0")
			w.step(c.after)
			w.queues(aJob("next", pods(2)), aJob("last", pods(2)))
			w.submits(aJob("pair-workers-0", pods(2), ofJobSet))
			w.submits(aJob("pair-workers-1", pods(2), ofJobSet))
			w.step(time.Second)
			w.wantPlaced(map[string]string{"pair-workers-0": c.on, "pair-workers-1": c.on})
		})
	}
}

// The manager restarts before all Jobs of a JobSet are placed: the rest is placed as one, where the
// others run.
func TestJobSetAfterARestart(t *testing.T) {
	w := newWorld(t)
	w.watchesGroup()
	w.jobSets = map[string]string{"pair": aJobSet}
	w.queues(aJob("pair-driver-0", pods(2), ofJobSet))
	on := w.placedOn("pair-driver-0")
	w.killed, w.cacheSyncs = true, true
	w.step(time.Minute)
	w.queues(aJob("other", pods(4), annotated(v1alpha1.AnnotationClusterSelector, "!x")))
	w.worker(map[string]string{"a": "b", "b": "a"}[on]).drains(true)
	w.submits(aJob("pair-workers-0", pods(2), ofJobSet))
	w.step(time.Second)
	w.queues(aJob("small", pods(1)))
	w.submits(aJob("pair-workers-1", pods(2), ofJobSet))
	w.step(time.Minute)
	if one, two := w.placedOn("pair-workers-0"), w.placedOn("pair-workers-1"); one != two {
		w.fail("one of the rest is on %q, the other on %q", one, two)
	}
}
