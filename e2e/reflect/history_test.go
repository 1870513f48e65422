package reflect_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/jobferry/jobferry/pkg/mirror"
)

// history is one Job's, with a manager that does what pkg/mirror says and nothing else.
type history struct {
	*rapid.T
	now         time.Time
	hubServer   apiServer
	farServer   apiServer
	hub, mirror *batchv1.Job
	worker      *honestWorker
	restart     bool // at the next worker
	verdicts    []mirror.Verdict
}

func newHistory(t *rapid.T, hub *program) *history {
	h := &history{T: t, now: epoch, hubServer: apiServer{program: hub, name: "hub"}}
	job := anyJob(t)
	if hub.minor >= schedulingMinor {
		anyScheduling(t, job)
	}
	var err error
	h.hub, err = h.hubServer.create(job)
	h.must(err, "the test's own Job")
	h.drawWorker()
	return h
}

// drawWorker draws a worker that keeps all fields of the Job.
func (h *history) drawWorker() {
	able := slices.DeleteFunc(slices.Clone(programs), func(p *program) bool {
		return h.hub.Spec.Scheduling != nil && p.minor < schedulingMinor
	})
	far := rapid.SampledFrom(able).Draw(h.T, "worker")
	h.farServer = apiServer{program: far, name: "far", version: h.farServer.version}
	h.worker = anyHonestWorker(h.T, far.minor)
}

func (h *history) must(err error, what string) {
	h.Helper()
	if err != nil {
		h.Fatalf("%s was rejected: %v", what, err)
	}
}

func (h *history) target() mirror.Target {
	return mirror.Target{Origin: "origin", Minor: h.farServer.minor, FreshStart: h.restart}
}

// userActs edits the hub Job, if the hub lets it pass.
func (h *history) userActs() {
	if changed, err := h.hubServer.update(h.hub, userEdits(h.T, h.hub)); err == nil {
		h.hub = changed
	}
}

// workerIsLost moves the Job to another worker, with what the hub knows.
func (h *history) workerIsLost() {
	h.mirror = nil
	h.drawWorker()
	h.restart = chance(h.T, 30, "restart")
}

func (h *history) workerSyncs() {
	if h.mirror != nil {
		h.worker.sync(h.T, h.mirror, h.now)
		h.mirror.ResourceVersion = h.farServer.next()
	}
}

// managerSyncs places, seeds, reflects and aligns, each if it's due.
func (h *history) managerSyncs() {
	if h.mirror == nil {
		if deref(h.hub.Spec.Suspend) || mirror.Finished(h.hub) {
			h.write(mirror.Unplaced(h.hub, h.now))
			return
		}
		h.place()
	}
	h.seed()
	h.reflect()
	if mirror.EndedShort(h.hub, h.mirror, h.now) && mirror.Finished(h.mirror) {
		h.mirror = nil // the rest is for the next one
		return
	}
	h.align()
}

func (h *history) place() {
	target := h.target()
	_, target.Suspended = h.wantedSeed()
	m := mirror.Project(h.hub, target)
	mirror.SelectPods(h.hub, m, "id-"+h.farServer.next())
	var err error
	h.mirror, err = h.farServer.create(m)
	h.must(err, "the mirror")
}

// wantedSeed is the progress that a moved Job takes along.
func (h *history) wantedSeed() (batchv1.JobStatus, bool) {
	return mirror.Seed(h.hub, h.restart)
}

func (h *history) seed() {
	seed, due := mirror.SeedDue(h.hub, h.mirror)
	if !due {
		return
	}
	var err error
	h.mirror, err = h.farServer.patchStatus(h.mirror, mirror.SeedPatch(h.mirror, &seed))
	h.must(err, "the seed")
}

func (h *history) reflect() {
	verdict := mirror.Reflect(h.hub, h.mirror, h.now)
	h.verdicts = append(h.verdicts, verdict)
	if !h.write(verdict) {
		return
	}
	endedShort := mirror.EndedShort(h.hub, h.mirror, h.now)
	h.now = h.now.Add(time.Second)
	switch again := mirror.Reflect(h.hub, h.mirror, h.now).(type) {
	case mirror.Next:
		if endedShort && !mirror.EndedShort(h.hub, h.mirror, h.now) {
			return // the Job's deadline passed in this second, so there is no time for the rest
		}
		h.Fatalf("the same mirror gave something new:\nfirst %+v\nthen %+v", verdict, again)
	case mirror.Violation:
		h.Fatalf("the same mirror gave a violation: %+v", again)
	}
}

// write applies a Next to the hub.
func (h *history) write(verdict mirror.Verdict) bool {
	next, ok := verdict.(mirror.Next)
	if !ok {
		return false
	}
	var err error
	h.hub, err = h.hubServer.patchStatus(h.hub, mirror.StatusPatch(h.hub, &next.Status, h.hub.Finalizers))
	h.must(err, "the status")
	return true
}

func (h *history) align() {
	switch act := mirror.Drift(h.hub, h.mirror, h.target()).(type) {
	case mirror.Patch:
		patched, err := h.farServer.patch(h.mirror, act.Bytes())
		h.must(err, "the patch "+string(act.Bytes()))
		if unmet := act.Unmet(patched); len(unmet) > 0 {
			h.Fatalf("the patch %s isn't in its answer: %v", act.Bytes(), unmet)
		}
		h.noNotes(act.Notes)
		h.mirror = patched
	case mirror.Recreate:
		if h.mirror.Status.Active > 0 {
			h.Fatalf("made anew while Pods run: %+v", act)
		}
		h.mirror = nil
		if !deref(h.hub.Spec.Suspend) {
			h.place()
		}
	case mirror.Refuse:
		h.Fatalf("refused: %+v", act)
	case mirror.None:
		h.noNotes(act.Notes)
	}
}

func (h *history) noNotes(notes []mirror.Note) {
	if len(notes) > 0 {
		h.Fatalf("notes without an admission that changes anything: %v", notes)
	}
}

// steps runs a random history.
func (h *history) steps(n int) {
	for range n {
		h.now = h.now.Add(time.Duration(rapid.IntRange(0, 30).Draw(h.T, "seconds")) * time.Second)
		switch rapid.IntRange(0, 9).Draw(h.T, "who") {
		case 0, 1:
			h.userActs()
		case 2, 3, 4, 5:
			h.workerSyncs()
		default:
			h.managerSyncs()
		}
		if chance(h.T, 3, "lost") && !mirror.Finished(h.hub) {
			h.workerIsLost()
		}
	}
}

// finish lets the Job run undisturbed, until both sides agree that it has ended.
func (h *history) finish() {
	for _, edit := range []func(*batchv1.Job){
		func(j *batchv1.Job) { j.Spec.Suspend = ptr(false) },
		func(j *batchv1.Job) { j.Spec.Parallelism = ptr(max(1, deref(j.Spec.Parallelism))) },
	} {
		changed := h.hub.DeepCopy()
		edit(changed)
		var err error
		h.hub, err = h.hubServer.update(h.hub, changed)
		h.must(err, "the resumption")
	}
	for range 400 {
		h.now = h.now.Add(10 * time.Second)
		h.workerSyncs()
		h.managerSyncs()
		if mirror.Finished(h.hub) {
			return
		}
	}
	h.Fatalf("the Job doesn't end:\nhub %+v %+v\nmirror %+v %+v\nverdict %+v",
		h.hub.Spec, h.hub.Status, h.mirror.Spec, h.mirror.Status, h.verdicts[len(h.verdicts)-1])
}

func (h *history) noViolation() {
	h.Helper()
	if i := slices.IndexFunc(h.verdicts, isViolation); i >= 0 {
		h.Fatalf("an honest worker broke a rule: %+v", h.verdicts[i])
	}
}

// onEachHub checks histories of Jobs on a hub of each release, with workers of any.
func onEachHub(t *testing.T, check func(*rapid.T, *history)) {
	for _, hub := range programs {
		t.Run(fmt.Sprintf("hub 1.%d", hub.minor), func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) { check(rt, newHistory(rt, hub)) })
		})
	}
}

func isViolation(v mirror.Verdict) bool {
	_, ok := v.(mirror.Violation)
	return ok
}

// An honest worker, whatever its version and clock, whatever users do.
func TestHonestWorker(t *testing.T) {
	onEachHub(t, func(rt *rapid.T, h *history) {
		h.steps(rapid.IntRange(0, 40).Draw(rt, "steps"))
		h.finish()
		h.noViolation()
		if mirror.OutcomeOf(h.hub) != mirror.OutcomeOf(h.mirror) {
			rt.Fatalf("the hub Job %s, its mirror %s", mirror.OutcomeOf(h.hub), mirror.OutcomeOf(h.mirror))
		}
	})
}

// A worker that reports the truth now and then.
func TestLyingWorker(t *testing.T) {
	onEachHub(t, func(rt *rapid.T, h *history) {
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			h.steps(1)
			if h.mirror == nil || !chance(rt, 60, "lies") {
				continue
			}
			truth := h.mirror.Status.DeepCopy()
			lie(rt, &h.mirror.Status)
			h.reflect()
			h.mirror.Status = *truth
		}
	})
}

// However a worker flaps, users see few transitions: the start, a suspension, its end announced,
// its end.
func TestTransitionsAreFew(t *testing.T) {
	onEachHub(t, func(rt *rapid.T, h *history) {
		h.mirror = h.hub.DeepCopy()
		for range 30 {
			h.mirror.Spec.Suspend = ptr(chance(rt, 40, "mirror suspended"))
			h.worker.sync(rt, h.mirror, h.now)
			truth := h.mirror.Status.DeepCopy()
			if chance(rt, 50, "lies") {
				lie(rt, &h.mirror.Status)
			}
			h.reflect()
			if h.mirror.Status = *truth; chance(rt, 20, "forgets") {
				h.mirror.Status = batchv1.JobStatus{}
			}
		}
		transitions := 0
		for _, v := range h.verdicts {
			if next, ok := v.(mirror.Next); ok && next.Change == mirror.Transition {
				transitions++
			}
		}
		if transitions > 4 {
			rt.Fatalf("%d transitions", transitions)
		}
	})
}

// Any status over any status, of whatever origin.
func TestAnyStatus(t *testing.T) {
	onEachHub(t, func(rt *rapid.T, h *history) {
		h.hub.Generation = int64(rapid.IntRange(1, 2).Draw(rt, "generation"))
		if chance(rt, 70, "hub has a status") {
			lie(rt, &h.hub.Status)
			h.hub = decodable(rt, h.hub)
		}
		h.mirror = h.hub.DeepCopy()
		h.mirror.Spec.Suspend = ptr(chance(rt, 40, "mirror suspended"))
		for range 3 {
			h.mirror.Status = anyStatus(rt)
			h.reflect()
		}
		h.write(mirror.Unplaced(h.hub, h.now))
	})
}

// decodable leaves out times that can't come from the hub's etcd.
func decodable(t *rapid.T, job *batchv1.Job) *batchv1.Job {
	s := &job.Status
	for i := range s.Conditions {
		s.Conditions[i].LastTransitionTime = metav1.NewTime(epoch)
	}
	if s.StartTime != nil {
		s.StartTime = ptr(metav1.NewTime(epoch))
	}
	if s.CompletionTime != nil {
		s.CompletionTime = ptr(metav1.NewTime(epoch.Add(time.Duration(rapid.IntRange(-1, 1).Draw(t, "end")) * time.Minute)))
	}
	return viaJSON(job)
}
