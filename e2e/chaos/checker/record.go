package checker

import (
	"fmt"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/e2e/chaos/story"
)

// Line is one of a Job's time line.
type Line struct {
	At   time.Duration
	Who  string
	Text string
}

func (l Line) String() string { return fmt.Sprintf("%s %-9s %s", stamp(l.At), l.Who, l.Text) }

// stamp is a time of the run, in seconds.
func stamp(at time.Duration) string { return fmt.Sprintf("%8.2fs", at.Seconds()) }

// record is all that is known of the Jobs of one name.
type record struct {
	story *story.Story
	lines []Line
	last  map[string]string // object -> what was noted of it last

	hub     *batchv1.Job // nil: there is none
	ended   *batchv1.Job // as it was when it had a terminal condition for the first time
	deletes bool         // its user has deleted it, or is about to
	halted  bool         // its user has suspended or resumed it
	scaled  bool         // its user has changed its parallelism
	silence silence
	// forsaken is the hub Job that isn't run again, as its mirror vanished.
	forsaken types.UID
	reasons  map[types.UID]reason // hub Job -> why it makes no progress
	homes    homes
	moves    []move
	// twins is how many indexes completed in two Pods at once.
	twins int
	// interrupted: Pods were asked to stop, by a suspension, a fence or a move.
	interrupted bool
	// disturbed: a worker was out of touch while the Job was there.
	disturbed bool

	mirrors map[types.UID]types.UID // mirror -> hub Job
	swept   map[types.UID]sweeping  // mirror that a janitor deleted -> what the hub knew then
	// plucked: a janitor deleted a Pod of it.
	plucked bool
	// rewound: the hub's etcd was put back while the Job was there. returned: after it was deleted.
	rewound, returned bool
	leaving           map[types.UID]time.Duration // mirror -> when it was first seen being deleted
	seen              map[types.UID]*batchv1.Job  // mirror -> as it was seen last
	suspended         map[types.UID]time.Duration // mirror -> when it was seen suspended last, or resumed
	pods              map[types.UID]*pod
	// asked are the pairs of Pods that were suspected.
	asked   map[[2]types.UID]bool
	excused bool
	shown   shown
}

// pod is what is known of a Pod.
type pod struct {
	uid, owner types.UID
	where      string
	namespace  string
	name       string
	phase      corev1.PodPhase
	index      int // -1: none
	seen       time.Duration
	running    bool
	ready      bool
	stopping   bool
	gone       bool
	// ended: with success. succeeded: and it hadn't been given up before. A Job controller gives
	// Pods up for a suspension or a fence: it takes its finalizer off them, and asks them to stop.
	// What they do in the end doesn't count.
	ended     bool
	succeeded bool
	// halted: it succeeded when its mirror was suspended already, so that it was about to be
	// deleted.
	halted bool
	// doneAt is when it was seen to have succeeded.
	doneAt time.Duration
	// twin is a Pod of the same mirror and index that was there when this one came; nil: there was
	// none.
	twin *pod

	// boundAt is when it was first seen with a node; nil: it wasn't. goneAt is when one with a node
	// was seen to be gone; nil: it wasn't.
	boundAt, goneAt *time.Duration
	// start is when it got the node, by its own times.
	start time.Time
	// ran is for how long it had the node, least and most for how long it may have.
	ran, least, most time.Duration
	// over: its end was told, when it had been seen with a node for the time watched.
	over    bool
	watched time.Duration
}

func newRecord(s *story.Story) *record {
	return &record{
		story: s, last: map[string]string{}, mirrors: map[types.UID]types.UID{}, leaving: map[types.UID]time.Duration{}, suspended: map[types.UID]time.Duration{},
		seen: map[types.UID]*batchv1.Job{}, pods: map[types.UID]*pod{},
		asked: map[[2]types.UID]bool{}, reasons: map[types.UID]reason{}, swept: map[types.UID]sweeping{}, shown: newShown(),
	}
}

// note adds a line.
func (r *record) note(at time.Duration, who, text string) {
	r.lines = append(r.lines, Line{At: at, Who: who, Text: text})
}

// noteChange adds a line about an object if it says something new.
func (r *record) noteChange(at time.Duration, who, object, text string) {
	if key := who + " " + object; r.last[key] != text {
		r.last[key] = text
		r.note(at, who, object+" "+text)
	}
}

func (r *record) circumstances() story.Circumstances {
	return story.Circumstances{Moved: len(r.moves)+len(r.swept) > 0 || r.plucked || r.rewound || r.isMirroredAgain(), Interrupted: r.interrupted, Disturbed: r.disturbed || len(r.moves) > 0}
}

// isMirroredAgain reports whether the Job that has ended in one worker had several mirrors there.
func (r *record) isMirroredAgain() bool {
	mirrors := 0
	for _, of := range r.mirrors {
		if r.ended != nil && of == r.ended.UID {
			mirrors++
		}
	}
	return mirrors > 1 && !r.story.Divided()
}

// pod returns what is known of a Pod, and whether it's seen for the first time.
func (r *record) pod(e Event) (p *pod, fresh bool) {
	if p := r.pods[e.Pod.UID]; p != nil {
		return p, false
	}
	p = &pod{uid: e.Pod.UID, where: e.Where, namespace: e.Pod.Namespace, name: e.Pod.Name, index: indexOf(e.Pod), seen: e.At}
	if owner := metav1.GetControllerOf(e.Pod); owner != nil {
		p.owner = owner.UID
	}
	p.twin = r.twinOf(p)
	r.pods[p.uid] = p
	return p, true
}

// twinOf is a Pod of the same mirror and index that is there; nil: there is none.
func (r *record) twinOf(p *pod) *pod {
	for _, other := range r.pods {
		if p.index >= 0 && other.owner == p.owner && other.index == p.index && other.goneAt == nil && !other.ended && !other.stopping {
			return other
		}
	}
	return nil
}

func indexOf(p *corev1.Pod) int {
	index, err := strconv.Atoi(p.Annotations[batchv1.JobCompletionIndexAnnotation])
	if err != nil {
		return -1
	}
	return index
}
