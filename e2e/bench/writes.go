package bench

import (
	"context"
	"fmt"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/bench/report"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// eachWrites measures what each write of the lower bound costs the hub, and an event: one kind
// after the other, for all Jobs, while nobody but the hub's own controllers watches.
func (r *run) eachWrites(ctx context.Context) error {
	hub, all := r.fleet.hub, names(r.options.Jobs)
	jobs := hub.client.BatchV1().Jobs(writesNamespace)
	writes := make(map[string]*boundWrites, len(all))
	for _, name := range all {
		writes[name] = &boundWrites{ctx: ctx, hub: jobs, name: name, mu: &sync.Mutex{}, job: &boundJob{worker: r.fleet.workers[0]}}
	}
	now := metav1.Now()
	status := func(next batchv1.JobStatus) func(*boundWrites) error {
		return func(w *boundWrites) error { w.job.status = &next; return w.status() }
	}
	for _, kind := range []struct {
		name string
		do   func(*boundWrites) error
	}{
		{"the user's CREATE of a Job", func(w *boundWrites) (err error) {
			w.job.hub, err = jobs.Create(ctx, newJob(writesNamespace, w.name, dispatched), metav1.CreateOptions{})
			return err
		}},
		{"PATCH, placement and finalizer", (*boundWrites).place},
		{"UPDATE of the status, started", status(batchv1.JobStatus{StartTime: &now, Active: 1, Ready: ptr.To[int32](1)})},
		{"UPDATE of the status, Complete", status(batchv1.JobStatus{
			StartTime: &now, CompletionTime: &now, Succeeded: 1, Ready: ptr.To[int32](0), Terminating: ptr.To[int32](0),
			Conditions: []batchv1.JobCondition{
				{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue, LastTransitionTime: now},
				{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: now},
			},
		})},
		{"CREATE of an event", func(w *boundWrites) error { return hub.tell(ctx, w.job.hub) }},
		{"the user's DELETE", func(w *boundWrites) error { return hub.remove(ctx, 1, writesNamespace, []string{w.name}) }},
	} {
		before, err := r.cpu()
		if err != nil {
			return err
		}
		if err := each(ctx, r.options.Submitters, all, func(_ context.Context, name string) error { return kind.do(writes[name]) }); err != nil {
			return fmt.Errorf("%s: %w", kind.name, err)
		}
		if err := pause(ctx, afterWrites); err != nil {
			return err
		}
		after, err := r.cpu()
		if err != nil {
			return err
		}
		r.result.Writes = append(r.result.Writes, report.Write{Name: kind.name, CPU: after.Since(before)})
	}
	return nil
}

// afterWrites is how long those who watch have to take note.
const afterWrites = time.Second

// tell writes an event as the manager does when a Job was placed and mirrored.
func (s *site) tell(ctx context.Context, job *batchv1.Job) error {
	_, err := s.client.EventsV1().Events(job.Namespace).Create(ctx, &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace, Name: job.Name + ".1"},
		EventTime:  metav1.NowMicro(), ReportingController: v1alpha1.EventController, ReportingInstance: "bench",
		Action: v1alpha1.EventMirrored, Reason: v1alpha1.EventMirrored, Type: corev1.EventTypeNormal,
		Regarding: corev1.ObjectReference{APIVersion: "batch/v1", Kind: "Job", Namespace: job.Namespace, Name: job.Name, UID: job.UID},
		Note:      "Mirrored to worker-1; 1 of 2 workers had room.",
	}, metav1.CreateOptions{})
	return err
}
