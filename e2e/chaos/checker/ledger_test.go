package checker

import (
	"cmp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/chaos/schedule"
	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/manager/usage"
)

// ranFor has a Pod run for some time, by its own times.
func (w *world) ranFor(d time.Duration) {
	e := w.run("open", 0)
	start := metav1.Unix(1000, 0)
	e.Pod.Spec.NodeName = "node"
	e.Pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: start}}
	w.see(e)
	e.Pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(start.Add(d))},
	}}}
	w.succeed(e)
}

func TestAccounts(t *testing.T) {
	for name, row := range map[string]struct {
		said, unknown usage.Seconds
		gone, blind   bool
		leaderless    bool
		clock         bool
		mirror        types.UID // that the account has; none: the Pod's
		want          []Rule
	}{
		"right":                                  {said: 100},
		"within a thousandth":                    {said: 100.09},
		"too much":                               {said: 100.2, want: []Rule{Account}},
		"too little":                             {said: 99.8, want: []Rule{Account}},
		"it lacks the Pod":                       {want: []Rule{Account}},
		"too much of a Pod that was deleted":     {said: 103, gone: true, want: []Rule{Account}},
		"whole seconds of a deleted Pod":         {said: 98.1, gone: true},
		"it lacks a Pod that was deleted":        {gone: true, want: []Rule{Account}},
		"it says that it may lack some":          {said: 50, unknown: 50, gone: true, blind: true},
		"it may lack less than it does":          {said: 50, unknown: 40, gone: true, blind: true, want: []Rule{Account}},
		"it may lack some without a reason":      {said: 100, unknown: 10, gone: true, want: []Rule{Account}},
		"nobody could see its mirror":            {said: 50, gone: true, blind: true, mirror: "next"},
		"it lacks a mirror that could be seen":   {said: 50, gone: true, mirror: "next", want: []Rule{Account}},
		"the worker's clock was set":             {said: 7, clock: true},
		"no manager led for a while":             {said: 90, unknown: 10, gone: true, leaderless: true},
		"it may lack more than was out of sight": {said: 50, unknown: 500, gone: true, blind: true, want: []Rule{Account}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.parallelism = 1
			w.place("open")
			if row.blind {
				heal := w.fault("open", schedule.BlackHoleLink)
				w.pass(30 * time.Second)
				heal()
				w.pass(20 * time.Second)
			}
			if row.clock {
				w.fault("open", schedule.SetClock)
			}
			if row.leaderless {
				w.checker.Ended(w.at, "manager-1")
				w.pass(20 * time.Second)
			}
			w.ranFor(100 * time.Second)
			w.hub(completed("0", 1))
			r := w.checker.records["job"]
			for _, p := range r.pods {
				if row.gone {
					p.goneAt = &w.at
				}
			}
			m := usage.Mirror{Worker: "open", UID: cmp.Or(row.mirror, w.mirrorOn("open")), Seconds: row.said, Unknown: row.unknown}
			hubstate.Set(r.hub, hubstate.Changes{hubstate.Usage: usage.Account{m}.String()})
			w.checker.checkAccount(w.at, r)
			w.expect(row.want...)
		})
	}
}

// A Pod whose end nobody tells ran until it was seen to be gone.
func TestPodsWithoutAnEnd(t *testing.T) {
	w := newWorld(t)
	w.place("open")
	e := w.run("open", 0)
	e.Pod.Spec.NodeName = "node"
	e.Pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Unix(1000, 0)}}
	w.see(e)
	w.pass(20 * time.Second)
	w.stop(e)
	d := w.checker.difference(w.checker.records["job"])
	if d.Pods != 20 || !strings.Contains(d.String(), "its end wasn't told") {
		t.Errorf("the difference is %s", d)
	}
}

// A Pod says that it ran for other times than it was seen to, or for two times.
func TestPodsThatAreNotSure(t *testing.T) {
	start := metav1.Unix(1000, 0)
	for name, row := range map[string]struct {
		told        []time.Duration
		gone        bool
		denied      bool
		least, most float64
	}{
		"it's sure":                        {told: []time.Duration{20 * time.Second}, least: 20, most: 20},
		"it tells of its end twice":        {told: []time.Duration{20 * time.Second, 24 * time.Second}, least: 20, most: 24},
		"its node was denied":              {told: []time.Duration{20 * time.Second}, denied: true, least: 15, most: 20},
		"its clock was set":                {told: []time.Duration{-20 * time.Second}},
		"its clock was set, and it's gone": {told: []time.Duration{-20 * time.Second}, gone: true, most: 30},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.place("open")
			e := w.run("open", 0)
			e.Pod.Spec.NodeName = "node"
			e.Pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: start}}
			w.see(e)
			w.pass(30 * time.Second)
			for _, told := range row.told {
				e.Pod = e.Pod.DeepCopy()
				if row.denied {
					e.Pod.Status.Conditions[0].Status, e.Pod.Status.StartTime = corev1.ConditionFalse, ptr.To(metav1.NewTime(start.Add(5*time.Second)))
				}
				e.Pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{
					Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(start.Add(told))},
				}}}
				w.succeed(e)
			}
			if row.gone {
				e.Pod.Status.Phase = corev1.PodSucceeded
				w.stop(e)
			}
			if d := w.checker.difference(w.checker.records["job"]); d.Least != row.least || d.Most != row.most {
				t.Errorf("it ran for %v to %v s, want %v to %v", d.Least, d.Most, row.least, row.most)
			}
		})
	}
}

func TestUnion(t *testing.T) {
	if got := union([]span{{5, 7}, {1, 3}, {2, 4}, {6, 6}, {20, 30}}); got != 15 {
		t.Errorf("%d, want 15", got)
	}
}

// Faults that aren't over, in several workers, are felt until now.
func TestBlindSecondsOfFaultsThatLast(t *testing.T) {
	w := newWorld(t)
	w.parallelism = 1
	w.place("open")
	w.ranFor(100 * time.Second)
	r := w.checker.records["job"]
	for _, p := range r.pods {
		other := *p
		other.where = "other"
		r.pods["other"] = &other
		break
	}
	w.fault("open", schedule.BlackHoleLink)
	w.fault("other", schedule.BlackHoleLink)
	w.pass(30 * time.Second)
	if got := w.checker.blindSeconds(w.at, r); got != 60 {
		t.Errorf("%v s, want 60", got)
	}
}
