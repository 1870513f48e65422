package job

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
)

// A worker doesn't stop the shard that is to leave it: after its time, what is left of the shard
// continues elsewhere, unless the user doesn't want it to run twice.
func TestKeptShard(t *testing.T) {
	for policy, stays := range map[string]bool{v1alpha1.OnClusterLostWait: true, v1alpha1.OnClusterLostResume: false} {
		t.Run(policy, func(t *testing.T) {
			w := newWorld(t)
			w.submits(divisible(16, 12, annotated(v1alpha1.AnnotationMaxClusters, v1alpha1.MaxClustersAll),
				annotated(v1alpha1.AnnotationOnClusterLost, policy)))
			w.step(time.Second)
			w.refuses = func(sent write) error {
				if sent.server == "b" {
					return apierrors.NewTimeoutError("never", 1)
				}
				return nil
			}
			w.mayRunTwice = true
			w.worker("b").drains(true)
			w.step(5 * time.Minute)
			placement, err := shards.Read(w.hub.jobs[jobKey])
			if _, is := placement.In("b"); err != nil || is != stays {
				w.fail("worker b has a shard: %v, want %v; %v", is, stays, err)
			}
			if got := w.store.unreleased()["b"]; len(got) != 1 || got[0] != jobKey {
				w.fail("unreleased: %v", got)
			}
		})
	}
}

// A fixed shard gets its next portion by a new mirror: nothing is wrong with that.
func TestNextPortionIsNoTrouble(t *testing.T) {
	w := newWorld(t)
	w.submits(divisible(400, 12))
	w.step(time.Second)
	first, _ := shards.Read(w.hub.jobs[jobKey])
	for range 20 {
		w.worker("b").finishes(4)
		w.step(time.Second)
	}
	if now, _ := shards.Read(w.hub.jobs[jobKey]); len(now.Shards) != 2 || now.Shards[1].String() == first.Shards[1].String() {
		w.fail("worker b has got no other portion than %v", now.Shards)
	}
	if slices.Contains(reasons(w.events), v1alpha1.EventMirrorRecreated) {
		w.fail("events %q", w.events)
	}
}

// A shard's mirror has ended with failed indexes, and its shard hasn't: it gets another mirror.
func TestShardWhoseMirrorHasFailedEarlier(t *testing.T) {
	w := newWorld(t)
	w.isEmbedded("a", "b")
	isDivided(w)
	b := w.worker("b")
	b.running = nil
	b.api.change(jobKey, func(m *batchv1.Job) {
		m.Status.Active, m.Status.Ready = 0, nil
		m.Status.Conditions = append(m.Status.Conditions, batchv1.JobCondition{
			Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: batchv1.JobReasonFailedIndexes, LastTransitionTime: metav1.NewTime(w.clock.Now()),
		})
	})
	w.step(time.Minute)
	w.finishAll()
	w.expectComplete("0-15")
}

// The marks of a shard's mirror are removed before the hub knows of it: no event says that it's
// created when it has them again.
func TestMarksOfAShardRemovedBeforeTheHubKnows(t *testing.T) {
	w := newWorld(t)
	w.submits(divisible(16, 12, identified))
	a := w.worker("a")
	if _, err := w.runUntil(func() bool { return a.api.jobs[jobKey] != nil }); err != nil {
		t.Fatal(err)
	}
	before := a.api.jobs[jobKey].UID
	a.api.change(jobKey, func(m *batchv1.Job) { delete(m.Labels, v1alpha1.LabelOrigin) })
	w.events = nil
	w.start()
	w.step(time.Minute)
	if after := a.api.jobs[jobKey]; after == nil || after.UID != before || mirror.Owns("hub-1", w.hub.jobs[jobKey].UID, after) != mirror.Ours {
		w.fail("ends as:\n%s", w.state())
	}
	if slices.ContainsFunc(w.events, func(e string) bool { return strings.Contains(e, v1alpha1.EventMirrored) }) {
		w.fail("events: %q", w.events)
	}
}

// The worker of a shard doesn't start it, and another has room: the shard leaves its worker.
func TestShardThatIsStuckLeaves(t *testing.T) {
	w := newWorld(t)
	w.worker("b").idle = true
	w.submits(divisible(16, 16))
	w.step(5*time.Minute + 10*time.Second)
	w.worker("b").idle = false
	w.step(time.Minute)
	if left := hubstate.Get(w.hub.jobs[jobKey], hubstate.Shards); left != "a=0-7" {
		w.fail("the shards are %s", left)
	}
	w.finishAll()
	w.expectComplete("0-15")
}

var shardSituations = []situation{
	{dispatch.InShards, isDivided, nil},
	{dispatch.Undecipherable, func(w *world) {
		isDivided(w)
		w.edits("edits the shards", kept(hubstate.Shards, "a=0-7;b=3-9"))
	}, []string{"event: InvalidAnnotation"}},
	{dispatch.PartSettled, func(w *world) {
		isDivided(w)
		w.worker("b").finishes(4)
		w.step(time.Second)
		w.worker("b").finishes(2)
		w.step(time.Second)
		w.worker("b").loses()
	}, nil},
	{dispatch.PartStopping, func(w *world) {
		isDivided(w)
		w.worker("b").idle = true
		w.worker("b").drains(true)
		w.run()
	}, nil},
	{dispatch.MirrorOutdated, func(w *world) {
		isDivided(w)
		w.suspends()
		w.step(time.Second)
		w.worker("b").api.change(jobKey, annotated(v1alpha1.AnnotationIndexes, "0-3"))
	}, []string{"b: delete", "event: MirrorRecreated"}},
}

// TestAWorkerThatCantBeReadGivesNothingBack: as its mirror can't be read, what it has given back
// stays in its shard. Other shards give back and go on meanwhile.
func TestAWorkerThatCantBeReadGivesNothingBack(t *testing.T) {
	w := newWorld(t)
	w.addWorker("c", 4)
	w.worker("c").connect()
	w.isEmbedded("a", "b", "c")
	w.submits(divisible(300, 20))
	w.step(time.Second)
	shard := func(worker string) shards.Shard {
		p, err := shards.Read(w.hub.jobs[jobKey])
		s, is := p.In(worker)
		if err != nil || !is {
			w.fail("worker %s has no shard: %v\n%s", worker, err, w.state())
		}
		return s
	}
	first := shard("a")
	w.refuses = func(sent write) error {
		if sent.server == "a" && sent.verb == "get" {
			return apierrors.NewInternalError(errors.New("never"))
		}
		return nil
	}
	for range 120 {
		w.worker("b").finishes(4)
		w.step(2 * time.Second)
	}
	if a := shard("a"); a.Returning == "" || !slices.Equal(a.Indexes, first.Indexes) {
		w.fail("worker a has %s of %s, and is to return %q", a, first, a.Returning)
	}
	if c := shard("c"); c.Indexes.Len() > 20 || len(w.worker("b").running) > 0 {
		w.fail("worker c has %s, and b runs %s", c, w.worker("b").running)
	}
	w.refuses = nil
	w.step(time.Minute)
	w.finishAll()
	w.expectComplete("0-299")
}

// TestADeletedJobAsksItsWorkersSideBySide: a worker that fails, when its mirror is to be deleted or
// when it's asked for one, delays nothing in another.
func TestADeletedJobAsksItsWorkersSideBySide(t *testing.T) {
	for _, verb := range []string{"delete", "get"} {
		t.Run(verb, func(t *testing.T) {
			w := newWorld(t)
			isDivided(w)
			asked := map[string]bool{}
			w.refuses = func(sent write) error {
				if sent.verb != verb {
					return nil
				}
				if asked[sent.server] = true; sent.server == "a" {
					return apierrors.NewInternalError(errors.New("never"))
				}
				return nil
			}
			w.deletes(metav1.DeletePropagationBackground)
			w.step(time.Second)
			if !asked["a"] || !asked["b"] || w.worker("b").api.jobs[jobKey] != nil || w.hub.jobs[jobKey] == nil {
				w.fail("asked: %v\n%s", asked, w.state())
			}
			w.refuses = nil
			w.step(time.Minute)
			if w.hub.jobs[jobKey] != nil || len(w.worker("a").api.jobs) > 0 {
				w.fail("left:\n%s", w.state())
			}
		})
	}
}

// TestAShardWhoseWorkerIsTooBusyKeepsItsPause: what changes in other workers meanwhile doesn't have
// it asked again at once.
func TestAShardWhoseWorkerIsTooBusyKeepsItsPause(t *testing.T) {
	w := newWorld(t)
	asked := 0
	w.refuses = func(sent write) error {
		if sent.server == "a" && sent.verb == "create" {
			asked++
			return apierrors.NewTooManyRequests("busy", 1)
		}
		return nil
	}
	w.submits(divisible(16, 16))
	if _, err := w.runUntil(func() bool { return asked > 0 }); err != nil {
		t.Fatal(err)
	}
	if pause := w.due[jobKey].Sub(w.clock.Now()); asked != 1 || pause < busyPause || pause > 2*busyPause || w.worker("b").api.jobs[jobKey] == nil {
		w.fail("asked %d times, again in %s:\n%s", asked, pause, w.state())
	}
}
