package checker

import (
	"fmt"
	"math"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/usage"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
)

// describeJob says a Job of the hub or a worker in a line.
func describeJob(j *batchv1.Job) string {
	var words []string
	add := func(when bool, format string, arguments ...any) {
		if when {
			words = append(words, fmt.Sprintf(format, arguments...))
		}
	}
	on := strings.Join(shards.WorkersOf(j), ", ")
	if shards.IsPlaced(j) {
		on = hubstate.Get(j, hubstate.Shards)
	}
	add(on != "", "on %s", on)
	asked, part := j.Annotations[v1alpha1.AnnotationIndexes]
	observed := j.Annotations[v1alpha1.AnnotationIndexesObserved]
	add(part, "part [%s]", asked)
	add(part && observed != asked, "observed [%s]", observed)
	from := hubstate.Get(j, hubstate.MovedFrom)
	add(from != "", "moved from %s", from)
	fenced := j.Annotations[v1alpha1.AnnotationFenced]
	add(fenced != "", "FENCED")
	add(ptr.Deref(j.Spec.Suspend, false), "suspended")
	add(j.DeletionTimestamp != nil, "being deleted")
	add(true, "%s", describeStatus(&j.Status))
	return strings.Join(words, ", ")
}

func describeStatus(s *batchv1.JobStatus) string {
	var words []string
	add := func(when bool, format string, arguments ...any) {
		if when {
			words = append(words, fmt.Sprintf(format, arguments...))
		}
	}
	add(true, "active %d", s.Active)
	add(ptr.Deref(s.Ready, 0) > 0, "ready %d", ptr.Deref(s.Ready, 0))
	add(ptr.Deref(s.Terminating, 0) > 0, "terminating %d", ptr.Deref(s.Terminating, 0))
	add(true, "succeeded %d", s.Succeeded)
	add(s.CompletedIndexes != "", "[%s]", s.CompletedIndexes)
	add(s.Failed > 0, "failed %d", s.Failed)
	add(ptr.Deref(s.FailedIndexes, "") != "", "[%s]", ptr.Deref(s.FailedIndexes, ""))
	for _, c := range s.Conditions {
		add(c.Status == corev1.ConditionTrue, "%s(%s)", c.Type, c.Reason)
	}
	return strings.Join(words, " ")
}

// describeAccount says the account of a mirror. Moments of the hub are in seconds since the last
// full hour.
func describeAccount(m *usage.Mirror) string {
	const hour = 3600
	text := fmt.Sprintf("%.3f s of %d Pods", m.Seconds, m.Count)
	if m.Unknown > 0 {
		text += fmt.Sprintf(", %.3f s unknown", m.Unknown)
	}
	if m.Pods > 0 {
		text += fmt.Sprintf(", %d since %.3f", m.Pods, math.Mod(float64(m.Since), hour))
	}
	text += fmt.Sprintf(", at %.3f, %.3f ahead", math.Mod(float64(m.At), hour), m.Ahead)
	if m.Left {
		text += ", left"
	}
	return text
}

func describePod(e Event, p *pod) string {
	var words []string
	if p.index >= 0 {
		words = append(words, fmt.Sprintf("index %d", p.index))
	}
	switch {
	case e.Gone:
		words = append(words, "is gone")
	default:
		words = append(words, string(e.Pod.Status.Phase))
	}
	if p.stopping && !e.Gone {
		words = append(words, "stopping")
	}
	return strings.Join(words, " ")
}
