package dispatch

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/mirrortest"
	"github.com/jobferry/jobferry/pkg/placement"
)

func TestPodsThatWait(t *testing.T) {
	podless := func(s *Snapshot) { s.Assigned.Pods.WaitingSince = noon.Add(-10 * time.Minute) }
	refused := func(s *Snapshot) {
		podless(s)
		s.Assigned.Pods.Asked, s.Assigned.Pods.Answer = true, "exceeded quota"
	}
	queued := func(waiting, others time.Duration) func(*Snapshot) {
		return func(s *Snapshot) {
			s.Assigned.Pods.WaitingSince, s.Assigned.ControllerSeen = noon.Add(-waiting), noon.Add(-others)
		}
	}
	preparing := func(since time.Duration, answer ...string) func(*Snapshot) {
		return func(s *Snapshot) {
			s.Assigned.Pods = PodsReport{Known: true, WaitingSince: noon.Add(-since), Asked: len(answer) > 0, Report: placement.Report{Bound: 1, Preparing: "p"}}
			if len(answer) > 0 {
				s.Assigned.Pods.Answer = answer[0]
			}
		}
	}
	ofOthers := func(s *Snapshot) { unschedulable(6 * time.Minute)(s); s.Assigned.Elsewhere.Succeeded = 3 }
	shard := func(j *batchv1.Job) { pending(j); j.Status.Succeeded = 3 }
	tried := func(j *batchv1.Job) { shard(j); j.Status.Failed = 1 }
	moved := func(s *Snapshot) {
		unschedulable(6 * time.Minute)(s)
		s.Assigned.Elsewhere = mirror.Ended{Succeeded: 3, Failed: 1}
	}
	triedMore := func(j *batchv1.Job) { tried(j); j.Status.Failed = 2 }
	for name, row := range map[string]lookRow{
		"a moved Job of which no Pod ran there": {hub: hubJob(placedOn("a"), tried), mirror: mirrorOf(hubJob(), tried), given: moved, then: []string{"move from a"}, reports: "0/3 nodes are available"},
		"one of which a Pod failed there":       {hub: hubJob(placedOn("a"), triedMore), mirror: mirrorOf(hubJob(), triedMore), given: moved, then: []string{"move from a"}, reports: "0/3 nodes are available"},
		"a shard of which no Pod ran":           {hub: hubJob(placedOn("a"), shard), mirror: mirrorOf(hubJob(), shard), given: ofOthers, then: []string{"move from a"}, reports: "0/3 nodes are available"},
		"a shard of which Pods failed":          {hub: hubJob(placedOn("a"), tried), mirror: mirrorOf(hubJob(), tried), given: ofOthers, then: []string{"move from a"}, reports: "0/3 nodes are available"},
		"Pods wait, not yet news":               {hub: hubJob(placedOn("a"), pending), mirror: mirrorOf(hubJob(), pending), given: unschedulable(time.Second), after: time.Second},
		"Pods wait since now":                   {hub: hubJob(placedOn("a"), pending), mirror: mirrorOf(hubJob(), pending), given: func(s *Snapshot) { unschedulable(0)(s); s.Assigned.Pods.WaitingSince = time.Time{} }, after: 2 * time.Second},
		"Pods can't start, not yet news":        {hub: hubJob(placedOn("a"), pending), mirror: mirrorOf(hubJob(), pending), given: notStarting(500 * time.Millisecond), after: 1500 * time.Millisecond},
		"Pods can't start, news":                {hub: hubJob(placedOn("a"), pending), mirror: mirrorOf(hubJob(), pending), given: notStarting(2 * time.Second), after: 5 * time.Minute, reports: "ErrImagePull"},
		"its node prepares a Pod":               {hub: hubJob(placedOn("a"), pending), mirror: mirrorOf(hubJob(), pending), given: preparing(time.Second), after: 2 * time.Second},
		"for long: why?":                        {hub: hubJob(placedOn("a"), pending), mirror: mirrorOf(hubJob(), pending), given: preparing(3 * time.Second), then: []string{"read errors of Pod p in a"}},
		"it's slow":                             {hub: hubJob(placedOn("a"), pending), mirror: mirrorOf(hubJob(), pending), given: preparing(time.Hour, ""), after: 30 * time.Second},
		"a volume is missing: it stays, and is told": {hub: hubJob(placedOn("a"), pending), mirror: mirrorOf(hubJob(), pending), given: preparing(time.Hour, `configmap "x" not found`), after: 5 * time.Minute,
			reports: `Pods can't be started: configmap "x" not found`},
		"no Pods yet, no news for long":           {hub: hubJob(placedOn("a")), mirror: mirrorOf(hubJob()), given: queued(10*time.Second, time.Hour), after: 20 * time.Second},
		"no Pods since now":                       {hub: hubJob(placedOn("a")), mirror: mirrorOf(hubJob()), given: queued(0, time.Hour), after: 30 * time.Second},
		"Pods wait, told":                         {hub: hubJob(placedOn("a"), pending), mirror: mirrorOf(hubJob(), pending), given: unschedulable(time.Minute), after: 4 * time.Minute, reports: "0/3 nodes are available"},
		"Pods wait too long":                      {hub: hubJob(placedOn("a"), pending), mirror: mirrorOf(hubJob(), pending), given: unschedulable(6 * time.Minute), then: []string{"move from a"}, reports: "0/3 nodes are available"},
		"Pods that can't be started, told":        {hub: hubJob(placedOn("a"), pending), mirror: mirrorOf(hubJob(), pending), given: notStarting(time.Minute), after: 5 * time.Minute, reports: "2 Pods can't be started: container main: ErrImagePull: not found"},
		"they stay where they are":                {hub: hubJob(placedOn("a"), pending), mirror: mirrorOf(hubJob(), pending), given: notStarting(time.Hour), after: 5 * time.Minute, reports: "2 Pods can't be started: container main: ErrImagePull: not found"},
		"Pods that don't run are looked at again": {hub: hubJob(placedOn("a"), pending), mirror: mirrorOf(hubJob(), pending), given: func(s *Snapshot) { s.Assigned.Pods.Known = true }, after: 30 * time.Second},
		"not started, nor is any other":           {hub: hubJob(placedOn("a")), mirror: mirrorOf(hubJob()), given: queued(time.Minute, time.Hour), after: 4 * time.Minute, reports: "its Job controller hasn't started the Job"},
		"not started, others are":                 {hub: hubJob(placedOn("a")), mirror: mirrorOf(hubJob()), given: queued(4*time.Minute, 10*time.Second), after: 20 * time.Second},
		"not started, others were":                {hub: hubJob(placedOn("a")), mirror: mirrorOf(hubJob()), given: queued(4*time.Minute, time.Minute), after: 4 * time.Minute, reports: "its Job controller hasn't started the Job"},
		"not started for long, though others are": {hub: hubJob(placedOn("a")), mirror: mirrorOf(hubJob()), given: queued(6*time.Minute, 0), after: 4 * time.Minute, reports: "its Job controller hasn't started the Job"},
		"not started for ever, though others are": {hub: hubJob(placedOn("a")), mirror: mirrorOf(hubJob()), given: queued(10*time.Minute, 0), then: []string{"move from a"}, reports: "its Job controller hasn't started the Job"},
		"started without Pods isn't in a queue":   {hub: hubJob(placedOn("a"), noPods), mirror: mirrorOf(hubJob(), noPods), given: queued(10*time.Minute, 0), then: []string{"read create errors in a"}},
		"no Pods: why?":                           {hub: hubJob(placedOn("a"), noPods), mirror: mirrorOf(hubJob(), noPods), given: podless, then: []string{"read create errors in a"}},
		"no Pods for too long":                    {hub: hubJob(placedOn("a"), noPods), mirror: mirrorOf(hubJob(), noPods), given: refused, then: []string{"move from a"}, reports: "can't be created: exceeded quota"},
		"Pods wait where others did in vain":      {hub: hubJob(placedOn("a"), pending), mirror: mirrorOf(hubJob(), pending), given: func(s *Snapshot) { unschedulable(time.Minute)(s); s.Assigned.Stockout = true }, then: []string{"move from a"}, reports: "0/3 nodes are available"},
		"the Job has more patience":               {hub: hubJob(placedOn("a"), pending, patience("1h")), mirror: mirrorOf(hubJob(), pending), given: unschedulable(6 * time.Minute), after: DefaultTiming().Recheck, reports: "0/3 nodes are available"},
		"the Job has less":                        {hub: hubJob(placedOn("a"), pending, patience("1m")), mirror: mirrorOf(hubJob(), pending), given: unschedulable(time.Minute), then: []string{"move from a"}, reports: "0/3 nodes are available"},
		"the Job's patience is no time":           {hub: hubJob(placedOn("a"), pending, patience("-1m")), mirror: mirrorOf(hubJob(), pending), given: unschedulable(time.Minute), after: 4 * time.Minute, reports: "0/3 nodes are available"},
	} {
		t.Run(name, row.check)
	}
}

// The time begins anew when the last Pod that ran has ended, or is gone.
func TestPodsThatWaitAfterOthersRan(t *testing.T) {
	ran := func(since time.Duration, bound int) func(*Snapshot) {
		return func(s *Snapshot) {
			unschedulable(since)(s)
			s.Assigned.Pods.EverRan, s.Assigned.Pods.Bound = true, bound
			if since == 0 {
				s.Assigned.Pods.WaitingSince = time.Time{}
			}
		}
	}
	ending := func(j *batchv1.Job) { pending(j); j.Status.Terminating = ptr.To[int32](1) }
	for name, row := range map[string]lookRow{
		"one ran, and another may run yet: it stays":       {hub: hubJob(placedOn("a"), pending), mirror: mirrorOf(hubJob(), pending), given: ran(time.Hour, 1), after: DefaultTiming().Recheck},
		"one ran, and the rest waits since now":            {hub: hubJob(placedOn("a"), pending), mirror: mirrorOf(hubJob(), pending), given: ran(0, 0), after: 2 * time.Second},
		"one ran, and the rest waits, told":                {hub: hubJob(placedOn("a"), pending), mirror: mirrorOf(hubJob(), pending), given: ran(time.Minute, 0), after: 4 * time.Minute, reports: "0/3 nodes are available"},
		"one ran, and the rest waits too long":             {hub: hubJob(placedOn("a"), pending), mirror: mirrorOf(hubJob(), pending), given: ran(6*time.Minute, 0), then: []string{"move from a"}, reports: "0/3 nodes are available"},
		"one ran, and the rest waits beside one that ends": {hub: hubJob(placedOn("a"), ending), mirror: mirrorOf(hubJob(), ending), given: ran(6*time.Minute, 0), after: time.Minute},
		"one ran, the next can't be made, not yet news":    {hub: hubJob(placedOn("a"), barren), mirror: mirrorOf(hubJob(), barren), given: waitingFor(10 * time.Second), after: 20 * time.Second},
		"one ran, there is no next: why?":                  {hub: hubJob(placedOn("a"), barren), mirror: mirrorOf(hubJob(), barren), given: waitingFor(30 * time.Second), then: []string{"read create errors in a"}},
		"one ran, the next waits for its back-off":         {hub: hubJob(placedOn("a"), barren), mirror: mirrorOf(hubJob(), barren), given: waitingFor(time.Hour, ""), after: 5 * time.Minute, reports: "hasn't made the next one"},
		"one failed, the next waits for its back-off":      {hub: hubJob(placedOn("a"), barren, oneFailed), mirror: mirrorOf(hubJob(), barren, oneFailed), given: waitingFor(time.Hour, ""), after: 5 * time.Minute, reports: "after 1 have failed: Kubernetes waits"},
		"one ran, the next can't be made: told":            {hub: hubJob(placedOn("a"), barren), mirror: mirrorOf(hubJob(), barren), given: waitingFor(time.Minute, "exceeded quota"), after: 4 * time.Minute, reports: "can't be created: exceeded quota"},
		"one ran, the next can't be made for too long":     {hub: hubJob(placedOn("a"), barren), mirror: mirrorOf(hubJob(), barren), given: waitingFor(time.Hour, "exceeded quota"), then: []string{"move from a"}, reports: "can't be created: exceeded quota"},
		"one ran, and the others' image is gone: told": {hub: hubJob(placedOn("a"), pending), mirror: mirrorOf(hubJob(), pending), given: func(s *Snapshot) {
			notStarting(time.Hour)(s)
			s.Assigned.Pods.EverRan, s.Assigned.Pods.Bound = true, 2
		}, after: 5 * time.Minute, reports: "ErrImagePull"},
	} {
		t.Run(name, row.check)
	}
}

// Pods that nobody says anything of, as they're gated, or as their scheduler doesn't run, wait as
// the others do.
func TestPodsThatAreUnbound(t *testing.T) {
	unbound := func(since time.Duration, ran bool, bound int) func(*Snapshot) {
		return func(s *Snapshot) {
			s.Assigned.Pods = PodsReport{Known: true, WaitingSince: noon.Add(-since), Report: placement.Report{EverRan: ran, Bound: bound, Unbound: 2, UnboundWhy: "gated by g"}}
		}
	}
	gatedByItself := func(j *batchv1.Job) {
		pending(j)
		j.Spec.Template.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "g"}}
	}
	says := "PodsWaiting: Worker a: 2 Pods have no node: gated by g"
	for name, row := range map[string]lookRow{
		"since now":                 {hub: hubJob(placedOn("a"), pending), mirror: mirrorOf(hubJob(), pending), given: func(s *Snapshot) { unbound(0, false, 0)(s); s.Assigned.Pods.WaitingSince = time.Time{} }, after: 30 * time.Second},
		"not yet news":              {hub: hubJob(placedOn("a"), pending), mirror: mirrorOf(hubJob(), pending), given: unbound(20*time.Second, false, 0), after: 10 * time.Second},
		"told":                      {hub: hubJob(placedOn("a"), pending), mirror: mirrorOf(hubJob(), pending), given: unbound(30*time.Second, false, 0), after: 4*time.Minute + 30*time.Second, reports: says},
		"too long":                  {hub: hubJob(placedOn("a"), pending), mirror: mirrorOf(hubJob(), pending), given: unbound(6*time.Minute, false, 0), then: []string{"move from a"}, reports: says},
		"others ran, not yet news":  {hub: hubJob(placedOn("a"), pending), mirror: mirrorOf(hubJob(), pending), given: unbound(20*time.Second, true, 0), after: 10 * time.Second},
		"others ran, told":          {hub: hubJob(placedOn("a"), pending), mirror: mirrorOf(hubJob(), pending), given: unbound(time.Minute, true, 0), after: 4 * time.Minute, reports: says},
		"others ran, too long":      {hub: hubJob(placedOn("a"), pending), mirror: mirrorOf(hubJob(), pending), given: unbound(6*time.Minute, true, 0), then: []string{"move from a"}, reports: says},
		"one may run yet: it stays": {hub: hubJob(placedOn("a"), pending), mirror: mirrorOf(hubJob(), pending), given: unbound(time.Hour, true, 1), after: DefaultTiming().Recheck},
		"the Job's own gate":        {hub: hubJob(placedOn("a"), gatedByItself), mirror: mirrorOf(hubJob(gatedByItself), gatedByItself), given: unbound(time.Hour, false, 0), after: 5 * time.Minute, reports: says},
	} {
		t.Run(name, row.check)
	}
}

// unschedulable has Pods wait for a node.
func unschedulable(since time.Duration) func(*Snapshot) {
	return func(s *Snapshot) {
		s.Assigned.Pods = PodsReport{Known: true, WaitingSince: noon.Add(-since), Report: placement.Report{Unschedulable: 2, Message: "0/3 nodes are available"}}
	}
}

// notStarting has Pods wait on their node.
func notStarting(since time.Duration) func(*Snapshot) {
	return func(s *Snapshot) {
		s.Assigned.Pods = PodsReport{Known: true, WaitingSince: noon.Add(-since), Report: placement.Report{Bound: 2, NotStarting: 2, StartError: "container main: ErrImagePull: not found"}}
	}
}

func noPods(j *batchv1.Job) {
	mirrortest.Shows(j, batchv1.JobStatus{StartTime: ptr.To(metav1.NewTime(noon.Add(-10 * time.Minute))), Active: 0, Ready: ptr.To[int32](0), Terminating: ptr.To[int32](0)})
}

// barren has a Pod of the Job have ended, and none be there.
func barren(j *batchv1.Job) {
	noPods(j)
	j.Status.Succeeded = 1
}

func oneFailed(j *batchv1.Job) { j.Status.Failed = 1 }

func waitingFor(since time.Duration, answer ...string) func(*Snapshot) {
	return func(s *Snapshot) {
		s.Assigned.Pods = PodsReport{Known: true, WaitingSince: noon.Add(-since), Asked: len(answer) > 0, Answer: strings.Join(answer, ""), Report: placement.Report{EverRan: true}}
	}
}

func pending(j *batchv1.Job) {
	noPods(j)
	j.Status.Active = 2
}

func patience(d string) func(*batchv1.Job) {
	return func(job *batchv1.Job) {
		if job.Annotations == nil {
			job.Annotations = map[string]string{}
		}
		job.Annotations[v1alpha1.AnnotationPodStartTimeout] = d
	}
}

// A time that can't be followed is said once, with the mirror.
func TestInvalidPodStartTimeout(t *testing.T) {
	for text, want := range map[string]string{
		"-1m": "\"-1m\" is no time such as 10m", "5": "\"5\" is no time such as 10m", "": "\"\" is no time such as 10m", "90s": "",
	} {
		plan := Decide(look(hubJob(placedOn("a"), patience(text)), at("a", nil)))
		var told []string
		for _, report := range plan.Reports {
			if report.Reason == v1alpha1.EventInvalid {
				told = append(told, report.Message)
			}
		}
		if want == "" && told != nil || want != "" && (len(told) != 1 || !strings.Contains(told[0], want)) {
			t.Errorf("%q: told %q, want %q", text, told, want)
		}
	}
}

// Only what the worker's scheduler says for as long as its admin allows counts against the worker.
func TestWhatCountsAgainstAWorker(t *testing.T) {
	for name, row := range map[string]struct {
		patience string
		pods     PodsReport
		active   int32
		want     bool
	}{
		"no node":                   {"", PodsReport{Known: true, Report: placement.Report{Unschedulable: 1}}, 1, true},
		"no node, an hurried Job":   {"1m", PodsReport{Known: true, Report: placement.Report{Unschedulable: 1}}, 1, false},
		"no Pods, by its admission": {"", PodsReport{Asked: true, Answer: "exceeded quota"}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			waited := 6 * time.Minute
			if row.patience != "" {
				waited = 2 * time.Minute
			}
			m := mirrorOf(hubJob(), func(j *batchv1.Job) {
				mirrortest.Shows(j, batchv1.JobStatus{StartTime: ptr.To(metav1.NewTime(noon.Add(-10 * time.Minute))), Active: row.active, Ready: ptr.To[int32](0), Terminating: ptr.To[int32](0)})
			})
			s := look(hubJob(placedOn("a"), patience(row.patience)), at("a", m))
			s.Assigned.Pods = row.pods
			s.Assigned.Pods.WaitingSince = noon.Add(-waited)
			plan := unstick(s, s.Assigned)
			if len(plan.Actions) != 1 {
				t.Fatalf("actions %v, want a move", plan.Actions)
			}
			if move, is := plan.Actions[0].(Place); !is || move.TimedOut != row.want {
				t.Errorf("%+v, want TimedOut %t", plan.Actions[0], row.want)
			}
		})
	}
}
