package job

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/placement/placementtest"
	"github.com/jobferry/jobferry/pkg/util/text"
)

// forged is a Job that somebody in a worker made to look like a mirror of this hub, and that can't
// be deleted.
func forged(hubUID string) *batchv1.Job {
	return aJob("train", annotated(v1alpha1.AnnotationHubUID, hubUID), func(job *batchv1.Job) {
		job.Labels = map[string]string{v1alpha1.LabelOrigin: "hub-1"}
		job.Finalizers = []string{"example.org/mine"}
		job.Spec.ManagedBy, job.Spec.Suspend = nil, ptr.To(false)
	})
}

// Worker b has Jobs that look like mirrors, of this Job or of another of its name, and keeps them.
// The Job is placed, runs and ends in a, and is deleted, as if there were none.
func TestForgedMirrors(t *testing.T) {
	for name, hubUID := range map[string]string{"of this Job": "hub-1", "of another": "other-uid"} {
		for when, given := range map[string]func(*world){
			"before the Job is placed": func(w *world) {
				w.worker("b").has(forged(hubUID))
				w.submits(aJob("train"))
			},
			"while it runs": func(w *world) {
				runs(w)
				w.worker("b").has(forged(hubUID))
			},
		} {
			t.Run(name+", "+when, func(t *testing.T) {
				w := newWorld(t)
				w.worker("b").idle, w.mayRunTwice = true, true
				given(w)
				w.step(time.Second)
				if !w.running("a") {
					w.fail("the Job doesn't run in a:\n%s", w.state())
				}
				w.worker("a").completes(4 - w.worker("a").api.jobs[jobKey].Status.Succeeded)
				w.step(time.Second)
				if job := w.hub.jobs[jobKey]; job.Status.Succeeded != 4 || hubstate.Get(job, hubstate.Cluster) != "a" {
					w.fail("the Job isn't Complete:\n%s", w.state())
				}
				w.deletes(metav1.DeletePropagationBackground)
				w.step(time.Second)
				if w.hub.jobs[jobKey] != nil {
					w.fail("the Job isn't deleted:\n%s", w.state())
				}
				if m := w.worker("b").api.jobs[jobKey]; m == nil || m.DeletionTimestamp == nil {
					w.fail("nobody deleted the forged mirror:\n%s", w.state())
				}
			})
		}
	}
}

// Requests to worker b hang for ever. The Job of worker a runs meanwhile.
func TestNothingWaitsForACleanup(t *testing.T) {
	w := newWorld(t)
	var hanging []func()
	w.background = func(f func()) { hanging = append(hanging, f) }
	w.worker("b").idle, w.mayRunTwice = true, true
	w.worker("b").has(forged("other-uid"))
	runs(w)
	w.step(time.Hour)
	if !w.running("a") || len(hanging) != 1 {
		w.fail("%d cleanups hang, want 1:\n%s", len(hanging), w.state())
	}
	hanging[0]()
	w.step(time.Second)
	if m := w.worker("b").api.jobs[jobKey]; m.DeletionTimestamp == nil {
		w.fail("nobody deleted the forged mirror:\n%s", w.state())
	}
}

// A cleanup that ends after its turn gives back the memory for the Job that it reads.
func TestACleanupKeepsNoPlace(t *testing.T) {
	w := newWorld(t)
	var hanging []func()
	w.background = func(f func()) { hanging = append(hanging, f) }
	w.whole.weight = func(types.UID) int64 { return wholeOfNamespace }
	w.worker("b").idle, w.mayRunTwice = true, true
	runs(w)
	w.worker("b").has(forged("hub-1"))
	w.step(time.Second)
	if len(hanging) != 1 {
		w.fail("%d cleanups hang, want 1:\n%s", len(hanging), w.state())
	}
	hanging[0]()
	if w.whole.held != 0 || len(w.whole.namespaces) > 0 {
		t.Errorf("%d bytes stay taken", w.whole.held)
	}
}

// A worker that refuses to remove a forged mirror is asked less and less often.
func TestRefusedCleanups(t *testing.T) {
	w := newWorld(t)
	asked := 0
	w.refuses = func(sent write) error {
		if sent.server == "b" {
			asked++
			return apierrors.NewForbidden(jobsResource, "train", nil)
		}
		return nil
	}
	w.worker("b").idle, w.mayRunTwice = true, true
	w.worker("b").has(forged("other-uid"))
	runs(w)
	w.step(time.Hour)
	if asked < 30 || asked > 70 {
		t.Errorf("%d requests in an hour", asked)
	}
	if got := w.store.unreleased()["b"]; len(got) != 1 || got[0] != jobKey {
		t.Errorf("unreleased: %v", got)
	}
}

// A worker keeps the mirror of a Job that is deleted on the hub: after its time, the hub doesn't
// wait.
func TestKeptMirrorOfADeletedJob(t *testing.T) {
	w := newWorld(t)
	runs(w)
	w.worker("a").api.change(jobKey, func(m *batchv1.Job) { m.Finalizers = append(m.Finalizers, "example.org/mine") })
	w.deletes(metav1.DeletePropagationBackground)
	w.step(80 * time.Second)
	if w.hub.jobs[jobKey] == nil {
		w.fail("the hub doesn't wait for the worker")
	}
	w.step(20 * time.Second)
	if w.hub.jobs[jobKey] != nil {
		w.fail("the hub still waits:\n%s", w.state())
	}
	if !slices.Contains(reasons(w.events), v1alpha1.EventNotReleased) {
		w.fail("events %q", w.events)
	}
	w.step(2 * time.Minute)
	if got := w.store.unreleased()["a"]; len(got) != 1 || got[0] != jobKey {
		t.Errorf("unreleased: %v", got)
	}
	w.worker("a").api.change(jobKey, func(m *batchv1.Job) { m.Finalizers = nil })
	w.step(time.Minute)
	if len(w.store.records) > 0 || len(w.worker("a").api.jobs) > 0 {
		w.fail("%d records are left:\n%s", len(w.store.records), w.state())
	}
}

// A worker hides its mirrors, and deletes none, while Jobs come and go. What is remembered of those
// that are gone has a bound, and goes when it deletes one, or isn't there any more.
func TestWhatAWorkerOwesOfJobsThatAreGoneIsBounded(t *testing.T) {
	w := newWorld(t)
	goes := func(i int) types.NamespacedName {
		job := aJob(fmt.Sprintf("train-%d", i), func(job *batchv1.Job) {
			job.UID = types.UID(fmt.Sprintf("uid-%d", i))
			account := fmt.Sprintf(`[{"worker":"a","uid":"of-%d","left":true,"at":1000}]`, i)
			hubstate.Set(job, hubstate.Changes{hubstate.Usage: account})
		})
		w.triggers.jobGone(job, true)
		return keyOf(job)
	}
	owed := func() (n int) {
		for _, r := range w.store.records {
			n += len(r.gone.Mirrors)
		}
		return n
	}
	for i := range 2 * maxOwed {
		goes(i)
	}
	if n := owed(); n != maxOwed || len(w.store.owed["a"]) != n {
		t.Errorf("%d mirrors are remembered, and %d counted", n, len(w.store.owed["a"]))
	}
	w.store.open(goes(0)).updateGone(func(g *dispatch.Gone) { g.Mirrors = nil })
	goes(-1)
	if goes(-2); owed() != maxOwed {
		t.Errorf("%d mirrors are remembered after one was deleted", owed())
	}
	for _, key := range w.store.all() {
		w.store.forget(key, unseen)
	}
	if len(w.store.owed) > 0 {
		t.Errorf("%d are left behind", len(w.store.owed["a"]))
	}
}

// A worker keeps the mirror of a Job that is moved away, and doesn't even stop it, or doesn't
// answer whether it has: after its time, the Job continues elsewhere.
func TestKeptMirrorOfAMovedJob(t *testing.T) {
	for name, refuses := range map[string]func(write) bool{
		"it doesn't stop":   func(sent write) bool { return sent.server == "a" },
		"it doesn't answer": func(sent write) bool { return sent.server == "a" && sent.verb == "get" },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			runs(w)
			w.refuses = func(sent write) error {
				if refuses(sent) {
					return apierrors.NewTimeoutError("never", 1)
				}
				return nil
			}
			w.mayRunTwice = true
			w.worker("a").drains(true)
			w.step(80 * time.Second)
			if w.running("b") {
				w.fail("the hub doesn't wait for the worker")
			}
			w.step(20*time.Second + maxRetry)
			if !w.running("b") {
				w.fail("the hub still waits:\n%s", w.state())
			}
		})
	}
}

// An honest worker is cut off while a Job is moved away from it. The time without a connection
// isn't held against it: the Job runs in one place, and no progress is lost.
func TestCutOffWhileAJobMoves(t *testing.T) {
	w := newWorld(t)
	runs(w)
	w.refuses = func(sent write) error {
		if sent.server == "a" {
			return apierrors.NewTimeoutError("slow", 1)
		}
		return nil
	}
	w.worker("a").drains(true)
	w.step(5 * time.Second)
	w.worker("a").disconnects()
	w.step(5 * time.Minute)
	w.worker("a").completes(1)
	w.refuses = nil
	w.worker("a").isBack()
	w.step(time.Minute)
	if !w.running("b") || w.worker("b").api.jobs[jobKey].Status.Succeeded != 2 {
		w.fail("the Job doesn't continue in b:\n%s", w.state())
	}
	if slices.Contains(reasons(w.events), v1alpha1.EventNotReleased) {
		w.fail("events %q", w.events)
	}
}

// A worker that comes and goes has no more time than maxPaused beside its own.
func TestPausesOfAReleaseAreBounded(t *testing.T) {
	var clock releaseClock
	now := noon
	clock.run(false, now)
	for range 1000 { // a second in each minute
		clock.run(true, now)
		now = now.Add(59 * time.Second)
		clock.run(false, now)
		now = now.Add(time.Second)
	}
	if had := now.Sub(clock.since(now)); had != 1000*time.Minute-maxPaused {
		t.Errorf("the worker has had %s", had)
	}
}

// A look takes a while, in which the Job is found to wait for a place: the clock goes on where it
// was.
func TestAPauseThatEndsBeforeItBegan(t *testing.T) {
	var clock releaseClock
	clock.run(false, noon)
	clock.run(true, noon.Add(2*time.Second))
	clock.run(false, noon.Add(time.Second))
	if since := clock.since(noon.Add(time.Minute)); !since.Equal(noon) {
		t.Errorf("it runs since %s", since)
	}
}

// A worker refuses a Job with megabytes of words: what is remembered of them is short.
func TestLongRefusalsAreCut(t *testing.T) {
	w := newWorld(t)
	w.refuses = func(sent write) error {
		if sent.server == "a" && sent.verb == "create" {
			return apierrors.NewForbidden(jobsResource, "train", errors.New(strings.Repeat("no\n", 1<<20)))
		}
		return nil
	}
	w.submits(aJob("train"))
	w.step(time.Minute)
	k := w.store.open(jobKey).read(w.clock.Now())
	if why := k.passedOver["a"]; why == "" || len(why) > maxObstacle {
		t.Errorf("%d bytes are remembered of why a is passed over", len(why))
	}
	for reason, told := range w.store.open(jobKey).reported.texts {
		if len(told.text) > text.MaxMessage {
			t.Errorf("%d bytes are remembered of the report %s", len(told.text), reason)
		}
	}
	if !w.running("b") {
		w.fail("the Job doesn't run in b:\n%s", w.state())
	}
}

// A worker that keeps the name of an earlier Job doesn't get the next one.
func TestKeptName(t *testing.T) {
	w := newWorld(t)
	w.worker("a").idle, w.mayRunTwice = true, true
	w.worker("a").has(forged("other-uid"))
	w.submits(aJob("train"))
	w.step(80 * time.Second)
	if w.running("b") {
		w.fail("the Job doesn't wait for its name")
	}
	w.step(20 * time.Second)
	if !w.running("b") {
		w.fail("the Job still waits:\n%s", w.state())
	}
}

// A worker's Job controller fences a Job again as soon as the hub has confirmed it.
func TestFencedAgainAndAgain(t *testing.T) {
	w := newWorld(t)
	runs(w)
	confirmed := 0
	w.answers = func(sent write) {
		if sent.server == "a" && sent.verb == "patch" {
			confirmed++
		}
	}
	for range 600 { // ten minutes
		w.worker("a").api.change(jobKey, annotated(v1alpha1.AnnotationFenced, "2026-03-01T12:00:01Z"))
		w.step(time.Second)
	}
	if confirmed < 10 || confirmed > 25 {
		t.Errorf("confirmed %d times in ten minutes", confirmed)
	}
}

// A worker asks for Secrets by what it writes into its mirror: its WorkerCluster allows none.
func TestTheHubAloneSaysWhatIsCarried(t *testing.T) {
	w := newWorld(t)
	password := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "password", UID: "password"}}
	if err := w.hub.others.Create(w.Context(), password); err != nil {
		t.Fatal(err)
	}
	w.submits(aJob("train", func(job *batchv1.Job) {
		job.Spec.Template.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{
			SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "password"}},
		}}
	}))
	w.step(time.Second)
	w.worker("a").api.change(jobKey, annotated("jobferry.dev/carry", "ConfigMap,Secret,ServiceAccount"))
	w.step(time.Hour)
	for name, v := range w.workers {
		var secrets corev1.SecretList
		if err := v.api.others.List(w.Context(), &secrets); err != nil || len(secrets.Items) > 0 {
			w.fail("worker %s has %v, %v", name, secrets.Items, err)
		}
	}
	if !w.running("a") {
		w.fail("the Job doesn't run:\n%s", w.state())
	}
}

// panicsIn has whoever writes to a worker panic, and counts how often.
func (w *world) panicsIn(worker string) *int {
	tries := new(int)
	w.refuses = func(sent write) error {
		if sent.server == worker {
			*tries++
			panic("made up")
		}
		return nil
	}
	return tries
}

// What a worker has made up brings a removal in the background to panic: the manager goes on, and
// tries again later.
func TestCleanupThatPanics(t *testing.T) {
	w := newWorld(t)
	w.mayRunTwice = true
	w.worker("b").idle = true
	w.worker("b").has(forged("other-uid"))
	tries := w.panicsIn("b")
	runs(w)
	w.step(10 * time.Minute)
	if !w.running("a") || *tries < 5 || *tries > 20 {
		w.fail("%d tries in ten minutes:\n%s", *tries, w.state())
	}
}

// What a worker has made up brings what is done there for a shard to panic, in a goroutine of its
// own: the manager goes on, the shard in the other worker runs, and this one is tried again.
func TestAShardThatPanics(t *testing.T) {
	w := newWorld(t)
	var oneAtATime sync.Mutex // the world is for one goroutine
	w.sideBySide = func(n int, call func(int)) {
		concurrently(n, func(i int) {
			oneAtATime.Lock()
			defer oneAtATime.Unlock()
			call(i)
		})
	}
	tries := w.panicsIn("a")
	w.submits(divisible(40, 16))
	w.step(10 * time.Second)
	if w.worker("b").running.Len() == 0 || *tries < 2 {
		w.fail("%d tries:\n%s", *tries, w.state())
	}
	w.refuses = nil
	w.finishAll()
	w.expectComplete("0-39")
}

// madeUpDevices has whoever allocates a worker's devices panic.
type madeUpDevices struct{ placementtest.Devices }

// Backs implements placementtest.Devices.
func (madeUpDevices) Backs(corev1.ResourceName) bool { return false }

// What a worker has made up, and makes whoever judges it panic, keeps Jobs from that worker, and no
// Job from another: neither those that are placed at once, nor those that wait, run in several
// workers, or are resumed.
func TestAWorkerThatCantBeJudged(t *testing.T) {
	w := newWorld(t)
	w.queues(aJob("full", pods(8)), aJob("before", pods(8)))
	w.wantPlaced(map[string]string{"full": "a", "before": "b"})
	w.queues(aJob("waits", pods(8)), aJob("divided", pods(2), func(job *batchv1.Job) {
		job.Annotations = map[string]string{v1alpha1.AnnotationMaxClusters: "All"}
	}))
	w.worker("a").devices = madeUpDevices{}
	w.ends("full")
	w.wantPlaced(map[string]string{"waits": ""})
	e, err := w.Explain(t.Context(), inTeam("waits"))
	if err != nil || !strings.Contains(e.Message, "1 the worker's objects can't be judged") {
		t.Errorf("explained as %q, %v", e.Message, err)
	}
	w.ends("before")
	w.wantPlaced(map[string]string{"waits": "b"})
	w.ends("waits")
	w.wantPlaced(map[string]string{"divided": "b"})
	w.worker("a").devices = nil
	w.queues(aJob("after", pods(8)))
	w.wantPlaced(map[string]string{"after": "a"})
}

// A Job returns to a worker that still has the mirror of its former stay, which goes. What it did
// meanwhile in the other worker is brought to the hub, and stops there first.
func TestAJobReturnsToAWorkerThatKeptItsMirror(t *testing.T) {
	w := newWorld(t)
	runs(w)
	w.worker("a").api.change(jobKey, func(m *batchv1.Job) { m.Finalizers = append(m.Finalizers, "example.org/mine") })
	w.worker("a").drains(true)
	w.step(100*time.Second + maxRetry)
	if !w.running("b") {
		w.fail("it doesn't run in b:\n%s", w.state())
	}
	w.worker("b").idle = true // its Pods take their time to end
	w.worker("a").drains(false)
	w.worker("b").drains(true)
	w.step(time.Second)
	w.worker("b").api.change(jobKey, func(m *batchv1.Job) { m.Status.Succeeded, m.Status.Active, m.Status.Ready = 3, 0, nil })
	w.worker("b").idle = false
	w.step(time.Second)
	w.worker("a").api.change(jobKey, func(m *batchv1.Job) { m.Finalizers = nil })
	w.step(time.Minute)
	if m := w.worker("a").api.jobs[jobKey]; m == nil || m.Status.Succeeded != 3 {
		w.fail("it doesn't go on in a:\n%s", w.state())
	}
}
