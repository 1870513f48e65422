package dispatch

import (
	"encoding/json"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/intervals"
)

// simWorker is a worker with its Job controller, which goes on while it's cut off.
type simWorker struct {
	name      string
	connected bool
	since     time.Time
	drained   bool
	mirror    *batchv1.Job
	// seen is the mirror as the manager's cache has it.
	seen *batchv1.Job
	// made are the completions made here.
	made int32
}

func (w *simWorker) see() {
	if w.connected {
		w.seen = w.mirror.DeepCopy()
	}
}

// work is one sync of the Job controller, or of the garbage collector.
func (w *simWorker) work(s *sim) {
	m := w.mirror
	switch {
	case m == nil || mirror.Finished(m):
		if m != nil && m.DeletionTimestamp != nil {
			w.mirror = nil
		}
	case m.DeletionTimestamp != nil:
		w.mirror = nil
	case mirror.Suspended(m):
		m.Status.StartTime, m.Status.Active = nil, 0
		w.pods(0)
		w.condition(s, batchv1.JobSuspended, corev1.ConditionTrue)
		s.bump(m)
	default:
		w.run(s)
		s.bump(m)
	}
}

func (w *simWorker) run(s *sim) {
	status := &w.mirror.Status
	if status.StartTime == nil {
		status.StartTime = ptr.To(metav1.NewTime(s.now))
	}
	if len(status.Conditions) > 0 {
		w.condition(s, batchv1.JobSuspended, corev1.ConditionFalse)
	}
	wanted := *w.mirror.Spec.Completions
	if status.Succeeded < wanted && rapid.Bool().Draw(s.t, "a Pod of "+w.name+" succeeds") {
		w.succeed()
	}
	w.pods(min(wanted-status.Succeeded, *w.mirror.Spec.Parallelism))
	if status.Succeeded == wanted {
		w.condition(s, batchv1.JobSuccessCriteriaMet, corev1.ConditionTrue)
		w.condition(s, batchv1.JobComplete, corev1.ConditionTrue)
		status.CompletionTime = ptr.To(metav1.NewTime(s.now))
	}
}

// succeed completes the first index that isn't.
func (w *simWorker) succeed() {
	status := &w.mirror.Status
	w.made++
	if *w.mirror.Spec.CompletionMode != batchv1.IndexedCompletion {
		status.Succeeded++
		return
	}
	done, err := intervals.ParseStrict(status.CompletedIndexes, intervals.NoLimit)
	if err != nil {
		panic(err) // it was made here, or seeded
	}
	missing := intervals.Range(0, int(*w.mirror.Spec.Completions)).Minus(done)
	done = done.Union(intervals.Of(missing.First(1)...))
	status.CompletedIndexes, status.Succeeded = done.String(), int32(done.Len())
}

func (w *simWorker) pods(n int32) {
	w.mirror.Status.Active, w.mirror.Status.Ready, w.mirror.Status.Terminating = n, ptr.To(n), ptr.To[int32](0)
}

func (w *simWorker) condition(s *sim, kind batchv1.JobConditionType, is corev1.ConditionStatus) {
	status := &w.mirror.Status
	status.Conditions = slices.DeleteFunc(status.Conditions, func(c batchv1.JobCondition) bool { return c.Type == kind })
	status.Conditions = append(status.Conditions, batchv1.JobCondition{Type: kind, Status: is, LastTransitionTime: metav1.NewTime(s.now)})
}

func (w *simWorker) runs() bool {
	return w.mirror != nil && !mirror.Finished(w.mirror) && !mirror.Suspended(w.mirror) && w.mirror.DeletionTimestamp == nil
}

func (s *sim) worker(name string) *simWorker {
	return s.workers[slices.IndexFunc(s.workers, func(w *simWorker) bool { return w.name == name })]
}

// apply carries an action out as the shell would; false: it came to nothing.
func (s *sim) apply(snapshot *Snapshot, action Action) bool {
	switch a := action.(type) {
	case SideBySide:
		did := true
		for _, action := range a.Actions {
			did = s.apply(snapshot, action) && did
		}
		return did
	case Place:
		return s.place(a)
	case Restore:
		return s.placeAt(a.To, Place{})
	case WriteStatus:
		return s.writeStatus(a)
	case CreateMirror:
		w := s.worker(a.Name)
		return w.connected && w.mirror == nil && s.create(w, a)
	case SeedMirror:
		return s.change(a.Name, mirror.SeedPatch(a.Mirror, &a.Status))
	case PatchMirror:
		return s.change(a.Name, a.Patch.Bytes())
	case SuspendMirror:
		return s.isStale(a.Name) && s.change(a.Name, mirror.SuspendPatch(a.Mirror))
	case DeleteMirror:
		return (!a.VerifyStale || s.isStale(a.Name)) && (!a.Suspend || s.change(a.Name, mirror.SuspendPatch(a.Mirror))) && s.remove(a)
	case ConfirmLeft:
		w := s.worker(a.Name)
		return w.connected && w.mirror == nil
	default:
		s.fail("in %s: what is %T?", hubstate.Get(snapshot.Job, hubstate.Cluster), action)
		return false
	}
}

func (s *sim) isStale(worker string) bool {
	return hubstate.Get(s.hub, hubstate.Cluster) != worker
}

// place chooses any worker that takes new Jobs, or none.
func (s *sim) place(a Place) bool {
	choice := []string{""}
	for _, w := range s.workers {
		if w.connected && !w.drained && w.name != a.Leave {
			choice = append(choice, w.name)
		}
	}
	return s.placeAt(choice[rapid.IntRange(min(1, len(choice)-1), len(choice)-1).Draw(s.t, "place")], a)
}

func (s *sim) placeAt(worker string, a Place) bool {
	if worker == "" {
		return false
	}
	var move *mirror.Move
	if a.Leave != "" {
		s.expectNothingForgotten(s.worker(a.Leave))
		s.gaveUp = s.gaveUp || s.lost(s.worker(a.Leave)) || s.formerIsLost()
		move = &mirror.Move{From: a.Leave, At: s.now, RanUntil: s.now, FreshStart: a.FreshStart}
	}
	hubstate.Set(s.hub, mirror.PlacementChanges(s.hub, worker, move))
	s.hub.Finalizers = []string{v1alpha1.FinalizerMirror}
	s.bump(s.hub)
	s.logf("    at %s", worker)
	return true
}

// expectNothingForgotten holds that a worker isn't given up before the hub shows all that it told.
// What a mirror has done that is being deleted is made again, wherever the Job goes on.
func (s *sim) expectNothingForgotten(w *simWorker) {
	if w.seen != nil && w.seen.DeletionTimestamp == nil && w.seen.Status.Succeeded > s.hub.Status.Succeeded {
		s.fail("%s told of %d completions, the hub shows %d", w.name, w.seen.Status.Succeeded, s.hub.Status.Succeeded)
	}
}

// formerIsLost: whatever is done now is done without waiting for the worker that the Job left.
func (s *sim) formerIsLost() bool {
	from := hubstate.Get(s.hub, hubstate.MovedFrom)
	return from != "" && s.lost(s.worker(from)) && s.worker(from).mirror != nil
}

func (s *sim) writeStatus(a WriteStatus) bool {
	next := merged(s.t, s.hub, a.Patch)
	was, is := &s.hub.Status, &next.Status
	if is.Succeeded < was.Succeeded || is.Failed < was.Failed || mirror.Finished(s.hub) {
		s.fail("the hub's status goes from %+v to %+v", was, is)
	}
	s.hub = next
	s.bump(s.hub)
	return true
}

func (s *sim) create(w *simWorker, a CreateMirror) bool {
	s.gaveUp = s.gaveUp || s.formerIsLost()
	w.mirror = a.Mirror.DeepCopy()
	s.bump(w.mirror)
	w.mirror.UID = types.UID(w.name + "-" + w.mirror.ResourceVersion)
	w.see()
	s.expectOneRuns(w)
	return true
}

func (s *sim) change(worker string, patch []byte) bool {
	w := s.worker(worker)
	if !w.connected || w.mirror == nil {
		return false
	}
	w.mirror = merged(s.t, w.mirror, patch)
	s.bump(w.mirror)
	w.see()
	s.expectOneRuns(w)
	return true
}

func (s *sim) remove(a DeleteMirror) bool {
	w := s.worker(a.Name)
	if !w.connected || w.mirror == nil || w.mirror.UID != a.Mirror.UID {
		return false
	}
	w.mirror.DeletionTimestamp = ptr.To(metav1.NewTime(s.now))
	w.see()
	return true
}

// expectOneRuns holds that a copy that was just written to doesn't run beside another one, unless
// the other's worker is given up. One that comes back with a copy runs beside it until it's
// suspended.
func (s *sim) expectOneRuns(written *simWorker) {
	if s.isStale(written.name) || !written.runs() {
		return
	}
	for _, w := range s.workers {
		if w != written && w.runs() && !s.lost(w) && !s.gaveUp {
			s.fail("%s runs the Job, while %s does", written.name, w.name)
		}
	}
}

// merged applies a JSON merge patch, with its preconditions.
func merged(t *rapid.T, job *batchv1.Job, patch []byte) *batchv1.Job {
	var object, change map[string]any
	text, err := json.Marshal(job)
	for _, err := range []error{err, json.Unmarshal(text, &object), json.Unmarshal(patch, &change)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	meta := change["metadata"].(map[string]any)
	if uid := meta["uid"]; uid != string(job.UID) {
		t.Fatalf("a patch for %v hits %s", uid, job.UID)
	}
	if version, ok := meta["resourceVersion"]; ok && version != job.ResourceVersion {
		t.Fatalf("a patch for version %v hits %s", version, job.ResourceVersion)
	}
	merge(object, change)
	next := &batchv1.Job{}
	text, err = json.Marshal(object)
	for _, err := range []error{err, json.Unmarshal(text, next)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return next
}

func merge(into, change map[string]any) {
	for key, value := range change {
		below, isMap := value.(map[string]any)
		had, hadMap := into[key].(map[string]any)
		switch {
		case value == nil:
			delete(into, key)
		case isMap && hadMap:
			merge(had, below)
		case isMap:
			fresh := map[string]any{}
			merge(fresh, below)
			into[key] = fresh
		default:
			into[key] = value
		}
	}
}
