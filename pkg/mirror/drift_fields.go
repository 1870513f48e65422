package mirror

import (
	"bytes"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// metadata copies the user's labels and annotations, and removes those that came from the hub and
// are gone there. It keeps those that the worker added.
func (d *drift) metadata() {
	if d.want.Labels == nil {
		d.want.Labels = map[string]string{}
	}
	syncKeys(d.want.Labels, d.target.HubKeys.labels(d.hub), d.last.Labels)
	d.annotate(v1alpha1.AnnotationHubUID, string(d.hub.UID))
	syncKeys(d.want.Annotations, d.target.HubKeys.Projected(d.hub.Annotations), d.last.Annotations)
	// A policy that sets a TTL may do so again when it's removed.
	d.want.Finalizers = finalizers(d.mirror, v1alpha1.FinalizerEnd, d.mirror.Spec.TTLSecondsAfterFinished != nil)
	if d.target.Indexes != nil && indexed(d.hub) && deref(d.mirror.Spec.ManagedBy) == v1alpha1.ManagedByWorker {
		d.annotate(v1alpha1.AnnotationIndexes, *d.target.Indexes)
	}
}

func syncKeys(into, want map[string]string, last []string) {
	for _, key := range last {
		if _, kept := want[key]; !kept && !isOf(key, ownDomains) {
			delete(into, key)
		}
	}
	for key, value := range want {
		into[key] = value
	}
}

// scalars sets the fields of the spec that can change at any time. The hub wins, also over an edit
// of the mirror in the worker.
func (d *drift) scalars() {
	want, hub := &d.want.Spec, &d.hub.Spec
	want.Suspend = ptr.To(Suspended(d.hub) || d.target.Suspended || awaitsSeed(d.hub, d.mirror) || Suspended(d.mirror) && Forgot(d.hub, d.mirror))
	// a policy may set it, and it would remove the result before Reflect reads it
	want.TTLSecondsAfterFinished = nil
	want.MaxFailedIndexes = hub.MaxFailedIndexes
	if hub.BackoffLimit != nil {
		want.BackoffLimit = hub.BackoffLimit
	}
	if hub.PodReplacementPolicy != nil {
		want.PodReplacementPolicy = hub.PodReplacementPolicy
	}
	if Suspended(d.hub) {
		delete(d.want.Annotations, v1alpha1.AnnotationDeadlineSpent)
	}
	want.ActiveDeadlineSeconds = wantedDeadline(d.hub, d.want)
	d.scale()
	d.minCount()
}

// scale sets parallelism, and the completions of Indexed Jobs. The API server changes completions
// only together with an equal parallelism; if the hub's parallelism differs, it takes a second
// patch.
func (d *drift) scale() {
	want, hub := &d.want.Spec, &d.hub.Spec
	if hub.Parallelism != nil {
		want.Parallelism = hub.Parallelism
	}
	if indexed(d.hub) && hub.Completions != nil && !ptr.Equal(want.Completions, hub.Completions) {
		want.Completions, want.Parallelism = hub.Completions, hub.Completions
	}
}

// minCount sets the size of a gang, the one field of spec.scheduling that can change. The API
// server wants it to be within the parallelism, also while scale takes its two patches.
func (d *drift) minCount() {
	hub, is := gang(&d.hub.Spec), gang(&d.want.Spec)
	if hub == nil || is == nil {
		return
	}
	wanted := hub.MinCount
	if wanted != nil {
		wanted = ptr.To(min(*wanted, deref(d.want.Spec.Parallelism)))
	}
	if !ptr.Equal(is.MinCount, wanted) {
		d.want.Spec.Scheduling = d.want.Spec.Scheduling.DeepCopy()
		gang(&d.want.Spec).MinCount = wanted
	}
}

// gang returns the policy of a Job whose Pods are scheduled all at once, nil if they aren't.
func gang(spec *batchv1.JobSpec) *schedulingv1alpha3.WorkloadPodGroupGangSchedulingPolicy {
	s := spec.Scheduling
	if s == nil || s.SchedulingPolicy == nil {
		return nil
	}
	return s.SchedulingPolicy.Gang
}

// kept is a spec without the fields that Drift compares itself; the worker keeps no difference in
// them.
func kept(of *batchv1.JobSpec) batchv1.JobSpec {
	spec := *of
	spec.Suspend, spec.Parallelism, spec.ManagedBy, spec.Selector, spec.ManualSelector = nil, nil, nil, nil, nil
	spec.TTLSecondsAfterFinished, spec.ActiveDeadlineSeconds, spec.PodReplacementPolicy = nil, nil, nil
	spec.BackoffLimit, spec.MaxFailedIndexes = nil, nil
	if g := gang(of); g != nil && g.MinCount != nil {
		spec.Scheduling = spec.Scheduling.DeepCopy()
		spec.Scheduling.SchedulingPolicy.Gang.MinCount = nil
	}
	return spec
}

// sameBytes reports whether two specs are the same in protobuf, as nearly all are that are equal.
// It takes a fifth of the time that DeepEqual takes.
func sameBytes(a, b *batchv1.JobSpec) bool {
	protoA, errA := a.Marshal()
	protoB, errB := b.Marshal()
	return errA == nil && errB == nil && bytes.Equal(protoA, protoB)
}

// foreign names the changes of the worker's admission that the hub can't undo. It ignores defaults
// and additions (sidecars, tolerations, labels, env).
func (d *drift) foreign() []Note {
	wanted, got := kept(&d.projected.Spec), kept(&d.want.Spec)
	if indexed(d.hub) {
		wanted.Completions, got.Completions = nil, nil
	}
	if labels.ValidatedSetSelector(wanted.Template.Labels).Matches(labels.Set(got.Template.Labels)) {
		wanted.Template.Labels, got.Template.Labels = nil, nil
	}
	if sameBytes(&wanted, &got) || equality.Semantic.DeepEqual(&wanted, &got) { // nearly always
		return nil
	}
	if equality.Semantic.DeepEqual(&wanted.Template.Spec, &got.Template.Spec) {
		wanted.Template.Spec, got.Template.Spec = corev1.PodSpec{}, corev1.PodSpec{}
	}
	const changed = "changed by the worker's admission"
	if isLarge(&d.projected.Spec.Template) { // the mirror has little of it
		return []Note{{Field: "spec.template", Message: changed}}
	}
	is, err := tree(&got)
	if err != nil {
		return []Note{{Field: "spec", Message: notEncoded}}
	}
	var notes []Note
	for _, f := range slices.Sorted(uncovered("spec", treeOf(&wanted), is)) {
		notes = append(notes, Note{Field: f, Message: changed})
	}
	return notes
}
