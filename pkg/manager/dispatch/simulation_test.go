package dispatch

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
)

const (
	simCompletions = 4
	simRaised      = 6 // the completions of an elastic Job, after they were raised
	simLostAfter   = 15 * time.Minute
	simTurn        = time.Minute
)

// Whatever happens to the workers and to the manager: a Job never starts a second time while a copy
// runs in a worker that hasn't been given up; what the hub counts never falls; and when all is well
// again it ends, in one place. If no worker was given up, each completion was made once.
func TestJobsSurviveLosses(t *testing.T) {
	for _, policy := range []string{v1alpha1.OnClusterLostResume, v1alpha1.OnClusterLostRestart, v1alpha1.OnClusterLostWait} {
		for _, mode := range []batchv1.CompletionMode{batchv1.IndexedCompletion, batchv1.NonIndexedCompletion} {
			t.Run(policy+"/"+string(mode), func(t *testing.T) {
				rapid.Check(t, func(t *rapid.T) { newSim(t, policy, mode).play() })
			})
		}
	}
}

// sim is a hub with one Job, and three workers. Nothing is kept between two turns of the manager
// but the objects: each turn is that of a manager that has just started.
type sim struct {
	t       *rapid.T
	now     time.Time
	hub     *batchv1.Job
	workers []*simWorker
	version int
	// gaveUp: a worker was lost in earnest, so that completions may be made twice.
	gaveUp bool
	log    []string
}

func newSim(t *rapid.T, policy string, mode batchv1.CompletionMode) *sim {
	s := &sim{t: t, now: noon}
	s.hub = hubJob(func(j *batchv1.Job) {
		j.Spec.Completions, j.Spec.CompletionMode = ptr.To[int32](simCompletions), &mode
		j.Spec.Parallelism = j.Spec.Completions
		j.Annotations = map[string]string{v1alpha1.AnnotationOnClusterLost: policy}
	})
	for _, name := range []string{"a", "b", "c"} {
		s.workers = append(s.workers, &simWorker{name: name, connected: true})
	}
	return s
}

// play lets things happen for a while, then mends everything and waits for the end.
func (s *sim) play() {
	for range rapid.IntRange(5, 80).Draw(s.t, "turns") {
		s.fault()
		s.turn(rapid.IntRange(0, 6).Draw(s.t, "actions until the manager is killed"))
	}
	for _, w := range s.workers {
		w.connected, w.drained = true, false
	}
	for range 60 {
		s.turn(100)
	}
	s.expectEnd()
}

// fault changes the state of a worker, or nothing.
func (s *sim) fault() {
	w := s.workers[rapid.IntRange(0, len(s.workers)-1).Draw(s.t, "worker")]
	switch rapid.SampledFrom([]string{"", "", "", "", "cut", "heal", "heal", "drain", "undrain", "suspend", "resume", "raise"}).Draw(s.t, "fault") {
	case "cut":
		if w.connected {
			w.connected, w.since = false, s.now
			s.logf("%s is cut off", w.name)
		}
	case "heal":
		w.connected = true
		s.logf("%s is in touch", w.name)
	case "drain":
		w.drained = true
		s.logf("%s is drained", w.name)
	case "undrain":
		w.drained = false
	case "suspend":
		s.suspendHub(true)
	case "resume":
		s.suspendHub(false)
	case "raise":
		s.raise()
	}
}

// raise scales an elastic Job up, as long as its end isn't shown.
func (s *sim) raise() {
	if *s.hub.Spec.CompletionMode != batchv1.IndexedCompletion || mirror.OutcomeOf(s.hub) != mirror.Undecided {
		return
	}
	s.hub.Spec.Completions, s.hub.Spec.Parallelism = ptr.To[int32](simRaised), ptr.To[int32](simRaised)
	s.edited()
	s.logf("%d completions", simRaised)
}

func (s *sim) suspendHub(suspend bool) {
	if mirror.Finished(s.hub) || mirror.Suspended(s.hub) == suspend {
		return
	}
	s.hub.Spec.Suspend = &suspend
	s.edited()
	s.logf("suspend %v", suspend)
}

// turn is a minute: the workers' controllers work, then the manager, until it's killed.
func (s *sim) turn(actions int) {
	s.now = s.now.Add(simTurn)
	for _, w := range s.workers {
		if rapid.Bool().Draw(s.t, w.name+" works") || actions == 100 {
			w.work(s)
		}
		w.see()
	}
	for actions > 0 {
		snapshot := s.gather()
		plan := Decide(snapshot)
		for _, action := range plan.Cleanup {
			s.logf("%s: %s", plan.Situation, words(action))
			s.apply(snapshot, action)
		}
		if len(plan.Actions) == 0 {
			return
		}
		changed := false
		for _, action := range plan.Actions {
			if actions--; actions < 0 {
				return // killed
			}
			s.logf("%s: %s", plan.Situation, words(action))
			if !s.apply(snapshot, action) {
				break
			}
			changed = true
		}
		if !changed {
			return
		}
	}
}

func (s *sim) gather() *Snapshot {
	snapshot := look(s.hub.DeepCopy(), s.view()...)
	snapshot.Now = s.now
	snapshot.Timing.ProgressFloor = 0
	return snapshot
}

// view is what the manager knows of the workers.
func (s *sim) view() []Worker {
	anyConnected := false
	for _, w := range s.workers {
		anyConnected = anyConnected || w.connected
	}
	assigned, from := hubstate.Get(s.hub, hubstate.Cluster), hubstate.Get(s.hub, hubstate.MovedFrom)
	var view []Worker
	for _, w := range s.workers {
		if w.name != assigned && w.name != from && w.seen == nil {
			continue
		}
		seen := at(w.name, w.seen.DeepCopy())
		if !w.connected {
			unreachable(&seen)
			seen.Loss = Loss{Since: w.since, Lost: anyConnected && s.lost(w), At: w.since.Add(simLostAfter)}
		}
		if w.drained {
			seen.Unwanted = "it's drained"
		}
		view = append(view, seen)
	}
	return view
}

func (s *sim) lost(w *simWorker) bool { return !w.connected && s.now.Sub(w.since) >= simLostAfter }

func (s *sim) expectEnd() {
	if mirror.Suspended(s.hub) {
		s.suspendHub(false)
		for range 60 {
			s.turn(100)
		}
	}
	wanted := *s.hub.Spec.Completions
	if !mirror.Finished(s.hub) || s.hub.Status.Succeeded != wanted {
		s.fail("in the end: %+v", s.hub.Status)
	}
	assigned := hubstate.Get(s.hub, hubstate.Cluster)
	made := int32(0)
	for _, w := range s.workers {
		made += w.made
		if w.mirror != nil && w.name != assigned {
			s.fail("%s still has a mirror: %+v", w.name, w.mirror.Status)
		}
	}
	if s.gaveUp && s.hub.Annotations[v1alpha1.AnnotationOnClusterLost] == v1alpha1.OnClusterLostWait {
		s.fail("a worker was given up, though the Job waits")
	}
	if !s.gaveUp && made != wanted {
		s.fail("%d completions were made, though no worker was given up", made)
	}
}

// edited: the hub Job's spec was.
func (s *sim) edited() {
	s.hub.Generation++
	s.bump(s.hub)
}

func (s *sim) bump(job *batchv1.Job) {
	s.version++
	job.ResourceVersion = fmt.Sprint(s.version)
}

func (s *sim) logf(format string, args ...any) {
	s.log = append(s.log, s.now.Format("15:04 ")+fmt.Sprintf(format, args...))
}

func (s *sim) fail(format string, args ...any) {
	s.t.Helper()
	text := ""
	for _, line := range s.log {
		text += line + "\n"
	}
	s.t.Fatalf("%s\n%s", text, fmt.Sprintf(format, args...))
}
