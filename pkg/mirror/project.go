package mirror

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror/recentfields"
)

// Target is the worker as far as a mirror depends on it, and how the mirror starts there. Only
// Project reads FreshStart and DeadlineSpent; the mirror keeps what Drift and Reflect need of them.
type Target struct {
	Origin        v1alpha1.Origin
	JobController v1alpha1.JobController // default BuiltIn
	HubKeys       HubKeys
	// Minor is the worker's Kubernetes version, 1.Minor. Zero is unknown, and treated as old.
	Minor int
	// Indexes is the value of AnnotationIndexes, if the worker runs a part of the Job only; nil: all.
	// See package shards.
	Indexes *string
	// Suspended keeps the mirror suspended though the hub Job isn't: until it's seeded (see SeedDue),
	// or until its objects are carried. Drift resumes it when the caller sets this no more.
	Suspended bool
	// FreshStart makes the mirror start from zero although the hub Job has progress. A work queue
	// always does.
	FreshStart bool
	// Recent are the recent fields of the hub Job as it is; nil: they are those of the mirror. Only
	// Drift reads them: see Whole for a new mirror.
	Recent *recentfields.Fingerprints
	// DeadlineSpent is how much of activeDeadlineSeconds a moved Job has used, in whole seconds.
	DeadlineSpent time.Duration
}

// Project returns the mirror of a hub Job in a worker, as the manager creates it. An allow-list
// decides over the metadata: name, namespace, and the user's labels and annotations; never
// ownerReferences (the worker's garbage collector would remove the mirror), finalizers or
// managedFields. Of the spec, ttlSecondsAfterFinished stays on the hub, which owns expiry.
func Project(hub *batchv1.Job, target Target) *batchv1.Job {
	m, rec := project(hub, target)
	m.Annotations[v1alpha1.AnnotationProjected] = rec.String()
	return m
}

// project returns the mirror without its record, and the record.
func project(hub *batchv1.Job, target Target) (*batchv1.Job, record) {
	labels, annotations := target.HubKeys.labels(hub), target.HubKeys.Projected(hub.Annotations)
	labels[v1alpha1.LabelOrigin] = string(target.Origin)
	annotations[v1alpha1.AnnotationHubUID] = string(hub.UID)
	if target.FreshStart || (workQueue(hub) && progressed(&hub.Status)) {
		annotations[v1alpha1.AnnotationFreshStart] = "true"
	}
	if spent := wholeSeconds(target.DeadlineSpent); spent != "" && hub.Spec.ActiveDeadlineSeconds != nil {
		annotations[v1alpha1.AnnotationDeadlineSpent] = spent
	}
	if target.Indexes != nil {
		annotations[v1alpha1.AnnotationIndexes] = *target.Indexes
		if target.JobController == v1alpha1.JobControllerEmbedded && indexed(hub) {
			annotations[v1alpha1.AnnotationIndexesObserved] = *target.Indexes
		}
	}
	m := &batchv1.Job{
		TypeMeta: metav1.TypeMeta{APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: hub.Namespace, Name: hub.Name,
			Labels: labels, Annotations: annotations,
		},
		Spec: projectSpec(hub, target),
	}
	m.Spec.ActiveDeadlineSeconds = wantedDeadline(hub, m)
	if target.Suspended {
		m.Spec.Suspend = ptr.To(true)
	}
	return m, newRecord(hub, &m.Spec, target.HubKeys)
}

func projectSpec(hub *batchv1.Job, target Target) batchv1.JobSpec {
	spec := hub.Spec
	spec.Template = corev1.PodTemplateSpec{} // it's copied once
	spec = *spec.DeepCopy()
	spec.Template = projectTemplate(hub)
	spec.TTLSecondsAfterFinished = nil
	spec.ManagedBy = nameOf(target.JobController)
	if !manualSelector(hub) {
		spec.Selector, spec.ManualSelector = nil, nil
	}
	return spec
}

// nameOf is what a mirror names its Job controller by; nil: that is the built-in.
func nameOf(controller v1alpha1.JobController) *string {
	if controller != v1alpha1.JobControllerEmbedded {
		return nil
	}
	return ptr.To(v1alpha1.ManagedByWorker)
}

// wantedDeadline is the part of the hub's deadline that is left for this mirror. A Job that has
// been suspended since it was moved has its whole deadline again, as the Job API says; Drift
// removes the annotation then.
func wantedDeadline(hub, mirror *batchv1.Job) *int64 {
	if hub.Spec.ActiveDeadlineSeconds == nil {
		return nil
	}
	limit, spent := *hub.Spec.ActiveDeadlineSeconds, seconds(mirror.Annotations[v1alpha1.AnnotationDeadlineSpent])
	if Suspended(hub) {
		spent = 0
	}
	return ptr.To(max(limit-spent, min(limit, 1)))
}
