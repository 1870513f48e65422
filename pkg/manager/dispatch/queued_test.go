package dispatch

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// suspendedThere is a mirror that has stopped.
func suspendedThere(j *batchv1.Job) { j.Spec.Suspend, j.Status.Active = ptr.To(true), 0 }

func TestQueued(t *testing.T) {
	shown := func(j *batchv1.Job) {
		suspendedJob(j)
		j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: batchv1.JobSuspended, Status: corev1.ConditionTrue})
	}
	placed := hubJob(placedOn("a"), shown)
	lost := func(w *Worker) { unreachable(w); w.Loss = Loss{Lost: true, Since: noon.Add(-time.Hour)} }
	ran := running
	running := hubJob(placedOn("a"), func(j *batchv1.Job) { j.Status.Active = 2 })
	stopping := hubJob(placedOn("a"), suspendedJob, func(j *batchv1.Job) { j.Status.Active = 2 })
	reserved, waiting := Admission{Checked: true, QuotaReserved: true, Workers: []string{"a", "b"}}, Admission{Checked: true, Workers: []string{"a", "b"}}
	elsewhere := Admission{Checked: true, QuotaReserved: true, Workers: []string{"b"}}
	rows := map[string]struct {
		given     *Snapshot
		admission Admission
		tight     bool // no room at home
		want      Situation
		then      []string
	}{
		"without quota it waits":            {look(hubJob(shown)), waiting, false, Suspended, nil},
		"shown as suspended first":          {look(hubJob(suspendedJob)), reserved, false, Queued, []string{"status"}},
		"then it's placed":                  {look(hubJob(shown)), reserved, false, Queued, []string{"place"}},
		"a place that's good is kept":       {look(placed, at("a", nil)), reserved, false, QueuedAtWorker, nil},
		"no room there any more":            {look(placed, at("a", nil)), reserved, true, QueuedAtWorker, []string{"move from a"}},
		"it isn't allowed there any more":   {look(placed, at("a", nil)), elsewhere, false, QueuedAtWorker, []string{"move from a"}},
		"stopped there, and may stay":       {look(placed, at("a", mirrorOf(placed, suspendedThere))), reserved, false, QueuedAtWorker, nil},
		"stopped there, and must leave":     {look(placed, at("a", mirrorOf(placed, suspendedThere))), elsewhere, false, QueuedAtWorker, []string{"move from a"}},
		"a running Job stays where it is":   {look(running, at("a", mirrorOf(running, func(j *batchv1.Job) { j.Status.Active = 2 }))), elsewhere, false, Mirrored, nil},
		"its worker is lost: queue's turn":  {look(running, at("a", nil, lost)), waiting, false, WorkerLost, nil},
		"taken back: it counts as stopped":  {look(stopping, at("a", nil, lost)), waiting, false, QuotaReclaimed, []string{"status"}},
		"stopped: its Pods ran there":       {look(placed, at("a", mirrorOf(placed, ran(0)), lost)), waiting, false, QuotaReclaimed, nil},
		"stopped: it had done more":         {look(placed, at("a", mirrorOf(placed, ran(1)), lost)), waiting, false, StatusUnreflected, []string{"status"}},
		"stopped: it waits for quota":       {look(placed, at("a", nil, lost)), waiting, false, QuotaReclaimed, nil},
		"with quota again it leaves":        {look(placed, at("a", nil, lost)), reserved, false, WorkerLost, []string{"move from a"}},
		"a worker away isn't acted upon":    {look(placed, at("a", nil, unreachable)), reserved, false, WorkerUnreachable, nil},
		"without a check, no early placing": {look(hubJob(shown)), Admission{}, false, Suspended, nil},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			row.given.Admission = row.admission
			if row.given.Assigned != nil {
				row.given.Assigned.Fits = !row.tight
			}
			checkDecision(t, row.given, row.want, row.then)
		})
	}
}

// A Job that waits to be admitted is placed as it will be, and isn't changed by that.
func TestAsResumed(t *testing.T) {
	admission := Admission{
		QuotaReserved: true, NodeSelector: map[string]string{"capacity": "spot"},
		Tolerations: []corev1.Toleration{{Key: "spot"}}, Parallelism: ptr.To[int32](1),
	}
	job := hubJob(suspendedJob)
	next := admission.AsResumed(job)
	pods := next.Spec.Template.Spec
	if pods.NodeSelector["capacity"] != "spot" || len(pods.Tolerations) != 1 || *next.Spec.Parallelism != 1 {
		t.Errorf("as resumed: %v %v %d", pods.NodeSelector, pods.Tolerations, *next.Spec.Parallelism)
	}
	if len(job.Spec.Template.Spec.NodeSelector)+len(job.Spec.Template.Spec.Tolerations) > 0 || *job.Spec.Parallelism != 2 {
		t.Error("the Job itself was changed")
	}
	if running := hubJob(); admission.AsResumed(running) != running {
		t.Error("a Job that runs has all of that already")
	}
}
