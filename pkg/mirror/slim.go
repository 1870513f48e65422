package mirror

import (
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/util/decoded"
	"github.com/jobferry/jobferry/pkg/util/digest"
)

// A cache holds a Pod template that has maxHeldTemplate bytes of protobuf at most, and that takes
// maxDecodedTemplate bytes at most when it's decoded. Those of nearly all Jobs have less than a
// tenth of that. What has alwaysHeldTemplate bytes of protobuf doesn't take more.
const (
	maxHeldTemplate    = 64 << 10
	maxDecodedTemplate = 128 << 10
	alwaysHeldTemplate = 1 << 10
)

// Slim removes from a hub Job what a cache needn't hold, before it's stored: the Job itself is
// changed. A Job that has ended becomes light. Neither Drift nor Reflect reads the template of such
// a Job, and Project isn't called for it.
func Slim(hub *batchv1.Job) {
	hub.ManagedFields = nil
	if Finished(hub) {
		Lighten(hub)
	}
}

// The labels and annotations that are read of hub Jobs. All others are only copied into mirrors.
var (
	labelsRead      = [...]string{LabelKueueQueue, LabelReplicatedJob}
	annotationsRead = [...]string{
		AnnotationKueueMinParallelism,
		v1alpha1.AnnotationClusterSelector, v1alpha1.AnnotationClusterPreference, v1alpha1.AnnotationOnClusterLost,
		v1alpha1.AnnotationPodStartTimeout, v1alpha1.AnnotationMaxClusters, v1alpha1.AnnotationGroup, v1alpha1.AnnotationTraceParent,
	}
)

// Version stands for what a hub Job asks for: two that are equal are placed alike.
type Version digest.Digest

// VersionOf returns the version of all that is read of a hub Job, but for what the manager writes
// itself.
func VersionOf(hub *batchv1.Job) Version {
	asks := struct {
		uid         types.UID
		generation  int64
		annotations [len(annotationsRead)]string
		labels      [len(labelsRead)]string
		suspended   corev1.ConditionStatus
		since       int64
	}{uid: hub.UID, generation: hub.Generation}
	for i, key := range annotationsRead {
		asks.annotations[i] = hub.Annotations[key]
	}
	for i, key := range labelsRead {
		asks.labels[i] = hub.Labels[key]
	}
	if c := findCondition(&hub.Status, batchv1.JobSuspended); c != nil {
		asks.suspended, asks.since = c.Status, c.LastTransitionTime.Unix()
	}
	return Version(digest.Of(asks))
}

// Lighten removes from a hub Job its Pod template, and all else that can be large and isn't read
// without it. That there is a policy stays visible, and so does the Pods' grace period.
//
// Before a light hub Job is passed to Project or Drift, it must be read again.
func Lighten(hub *batchv1.Job) {
	had := hub.ObjectMeta
	hub.ObjectMeta = metav1.ObjectMeta{
		Namespace: had.Namespace, Name: had.Name, UID: had.UID, ResourceVersion: had.ResourceVersion, Generation: had.Generation,
		CreationTimestamp: had.CreationTimestamp, DeletionTimestamp: had.DeletionTimestamp, Finalizers: had.Finalizers,
		Labels: heldKeys(had.Labels, labelsRead[:]), Annotations: heldKeys(had.Annotations, annotationsRead[:]),
		OwnerReferences: HeldOwner(&had),
	}
	hub.Spec.Selector = nil
	if hub.Spec.Scheduling != nil {
		hub.Spec.Scheduling = &batchv1.JobSchedulingConfiguration{}
	}
	removeTemplate(hub)
}

// MaxHeldOwner bounds what is held of an owner reference, in bytes of protobuf. API servers take
// names and UIDs of any size in it; those of a Job are short.
const MaxHeldOwner = 1 << 10

// HeldOwner is the controller of an object of the hub, by which it may belong to a group. CronJobs
// have none.
func HeldOwner(of metav1.Object) []metav1.OwnerReference {
	owner := metav1.GetControllerOf(of)
	if owner == nil || owner.Kind == "CronJob" || owner.Size() > MaxHeldOwner {
		return nil
	}
	return []metav1.OwnerReference{*owner}
}

// LightenMirror is Lighten for a mirror, which keeps the labels and annotations that its record
// names, and the name of its hub Job if it has another one. A light mirror can be passed to all
// functions.
func LightenMirror(job *batchv1.Job) {
	last, _ := readRecord(job)
	if name := NameOnHub(job); name != job.Name && name != "" {
		defer func() { job.Spec.Template.Labels = map[string]string{batchv1.JobNameLabel: name} }()
	}
	job.Labels = heldMarks(job.Labels, last.Labels)
	job.Annotations = heldMarks(job.Annotations, last.Annotations)
	removeTemplate(job)
}

func removeTemplate(job *batchv1.Job) {
	job.Spec.Template = corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		TerminationGracePeriodSeconds: job.Spec.Template.Spec.TerminationGracePeriodSeconds,
	}}
	if job.Spec.PodFailurePolicy != nil {
		job.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{}
	}
	if job.Spec.SuccessPolicy != nil {
		job.Spec.SuccessPolicy = &batchv1.SuccessPolicy{}
	}
}

// Light reports whether a Job is held without its Pod template. An API server stores none without a
// container or a restart policy.
func Light(job *batchv1.Job) bool {
	spec := &job.Spec.Template.Spec
	return len(spec.Containers) == 0 && spec.RestartPolicy == ""
}

// What a cache holds of a mirror's lists at most. A status with more conditions or uncounted Pods
// breaks a rule, and an API server stores no more rules. A worker's admin who gives a mirror more
// finalizers loses those that the manager doesn't see when it removes its own.
const (
	maxHeldConditions = 100
	maxHeldUncounted  = MaxUncountedPods + 1
	maxHeldFinalizers = 100
	maxHeldRules      = 20
	maxHeldPart       = 64 << 10  // bytes of a policy or selector, decoded
	alwaysHeldPart    = 1 << 10   // bytes of protobuf
	maxHeldLabels     = 1000      // and annotations, without a record
	maxHeldMarks      = 384 << 10 // bytes of both; an API server stores 256 KiB of annotations
	maxHeldOurs       = 100       // of these, by Jobferry's prefix or Kueue's; there are some 20
)

// cutLists bounds the lists of a mirror, which its worker's API server may make of any length: one
// of many small items takes much more memory than its bytes say.
func cutLists(job *batchv1.Job) {
	s, spec := &job.Status, &job.Spec
	s.Conditions = cut(s.Conditions, maxHeldConditions)
	job.Finalizers = cut(job.Finalizers, maxHeldFinalizers)
	if u := s.UncountedTerminatedPods; u != nil { // it may be another's, too
		s.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{Succeeded: cut(u.Succeeded, maxHeldUncounted), Failed: cut(u.Failed, maxHeldUncounted)}
	}
	if p := spec.PodFailurePolicy; p != nil && isLong(p) {
		spec.PodFailurePolicy = &batchv1.PodFailurePolicy{}
	}
	if p := spec.SuccessPolicy; p != nil {
		spec.SuccessPolicy = &batchv1.SuccessPolicy{Rules: cut(p.Rules, maxHeldRules)}
	}
	if s := spec.Selector; s != nil && isLong(s) {
		spec.Selector = nil
	}
}

// isLong reports whether a part of a mirror takes more than is held. What has alwaysHeldPart bytes
// of protobuf doesn't.
func isLong(part interface {
	Size() int
	Marshal() ([]byte, error)
}) bool {
	return part.Size() > alwaysHeldPart && decoded.Size(part) > maxHeldPart
}

// cut returns the first items of a list, in memory of their own.
func cut[T any](all []T, most int) []T {
	if len(all) <= most {
		return all
	}
	return slices.Clone(all[:most])
}

// SlimMirror is Slim for the mirrors in a worker. A mirror with a large Pod template becomes light,
// too, and what the worker added to the labels and annotations is removed. One without marks isn't
// one any more, also if it had too many.
func SlimMirror(job *batchv1.Job) {
	job.ManagedFields = nil
	cutLists(job)
	if Finished(job) || isLarge(&job.Spec.Template) {
		LightenMirror(job)
	}
	last, known := readRecord(job)
	if known || len(job.Labels)+len(job.Annotations) > maxHeldLabels {
		job.Labels = heldMarks(job.Labels, last.Labels)
		job.Annotations = heldMarks(job.Annotations, last.Annotations)
	}
	if hasTooManyMarks(job) {
		job.Labels, job.Annotations = nil, nil
	}
	job.OwnerReferences = nil
}

// hasTooManyMarks reports whether a mirror has more marks than is held.
func hasTooManyMarks(job *batchv1.Job) bool {
	bytes, ours := 0, 0
	for _, marks := range []map[string]string{job.Labels, job.Annotations} {
		for key, value := range marks {
			if bytes += len(key) + len(value); isOurs(key) {
				ours++
			}
		}
	}
	return bytes > maxHeldMarks || ours > maxHeldOurs
}

// isLarge reports whether a cache holds no mirror with this template.
func isLarge(template *corev1.PodTemplateSpec) bool {
	size := template.Size()
	return size > maxHeldTemplate || size > alwaysHeldTemplate && decoded.Size(template) > maxDecodedTemplate
}

// heldMarks are the labels or annotations that are Jobferry's or Kueue's, and those of the record.
func heldMarks(all map[string]string, recorded []string) map[string]string {
	held := heldKeys(all, recorded)
	for key, value := range all {
		if isOurs(key) {
			held[key] = value
		}
	}
	return held
}

// isOurs reports whether the key of a label or annotation is Jobferry's or Kueue's.
func isOurs(key string) bool {
	return strings.HasPrefix(key, v1alpha1.KeyPrefix) || strings.HasPrefix(key, kueuePrefix)
}

// heldKeys are the labels or annotations of some keys.
func heldKeys(all map[string]string, keys []string) map[string]string {
	held := map[string]string{}
	for _, key := range keys {
		if value, ok := all[key]; ok {
			held[key] = value
		}
	}
	return held
}
