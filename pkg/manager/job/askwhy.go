package job

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/manager/clusters"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
)

// failedCreate is the reason of the events of Job controllers, built-in and embedded, about Pods
// that they couldn't create.
const failedCreate = "FailedCreate"

// askWhy reads from a worker's events why a mirror has no Pods: quotas, admission and missing
// objects show nowhere else. It's asked once for a mirror.
func (r *Reconciler) askWhy(ctx context.Context, s *dispatch.Snapshot, w *clusters.Worker, a dispatch.AskWhy) (outcome, error) {
	var events corev1.EventList
	err := w.Client().List(ctx, &events, client.InNamespace(a.Mirror.Namespace), client.MatchingFieldsSelector{
		Selector: fields.SelectorFromSet(fields.Set{"involvedObject.uid": string(a.Mirror.UID), "reason": failedCreate}),
	})
	answer := latestMessage(events.Items)
	switch {
	case apierrors.IsForbidden(err):
		// That is an answer, too: the Job isn't to wait for one, it goes elsewhere in its time.
		answer = "the Job has no Pods, and why can't be read: " + err.Error()
	case err != nil:
		return outcome{}, &workerError{w.Name(), err}
	}
	r.memory.Asked(s.Job, a.Mirror.UID, answer, r.clock.Now())
	return outcome{changed: true}, nil
}

func latestMessage(events []corev1.Event) string {
	var latest *corev1.Event
	for i := range events {
		if latest == nil || latest.LastTimestamp.Before(&events[i].LastTimestamp) {
			latest = &events[i]
		}
	}
	if latest == nil {
		return ""
	}
	return latest.Message
}
