package worker

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/util/decoded"
	"github.com/jobferry/jobferry/pkg/worker/plan"
)

// CacheOptions are options of the cache of the manager that [Setup] gets with the same options. Its
// cache has all Pods and Jobs of the cluster. With these it holds only what this controller reads:
// of a Pod that another kind of controller owns its name, as metadata, so that it can't be read as
// a Pod. [Setup] works with any other cache as well, but for more memory.
func CacheOptions(options []Options) cache.Options {
	var s slimming
	for _, o := range options {
		s = append(s, o.withDefaults())
	}
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}:  {Transform: s.pod},
			&batchv1.Job{}: {Transform: s.job},
		},
	}
}

// slimming keeps what controllers with these options read. Applied twice it changes nothing more.
type slimming []Options

// job keeps all of a Job that Pods may be made of, and little of others.
func (s slimming) job(object any) (any, error) {
	job, ok := object.(*batchv1.Job)
	if !ok {
		return object, nil // a tombstone
	}
	job.ManagedFields = nil
	end := plan.Finished(job)
	if end == nil && slices.ContainsFunc(s, func(o Options) bool { return o.manages(job) }) {
		if weightOf(job) <= maxHeldJob {
			return job, nil
		}
		return outlineOf(job), nil
	}
	slim := outlineOf(job)
	if end != nil {
		slim.Status.Conditions = []batchv1.JobCondition{{Type: end.Type, Status: end.Status, LastTransitionTime: end.LastTransitionTime}}
	}
	return slim, nil
}

// maxHeldJob is up to how many bytes an unfinished Job takes that is held whole. A tenant can make
// one of 1.5 MB that takes twenty times as much.
const maxHeldJob = 32 << 10

// freeLists is how many bytes of the lists of a shard's indexes don't weigh.
const freeLists = 64 << 10

// weightOf is what a Job takes, but for lists that are long with its Pods: those of its status, and
// those of a shard's indexes, which anybody may write.
func weightOf(job *batchv1.Job) int64 {
	rest := *job
	rest.Status.CompletedIndexes, rest.Status.FailedIndexes, rest.Status.UncountedTerminatedPods = "", nil, nil
	lists := len(job.Annotations[v1alpha1.AnnotationIndexes]) + len(job.Annotations[v1alpha1.AnnotationIndexesObserved])
	return decoded.Size(&rest) - int64(min(lists, freeLists))
}

// isOutline reports whether a Job is one of outlineOf: all others have a container. An unfinished
// one is read from the API server for its sync.
func isOutline(job *batchv1.Job) bool { return len(job.Spec.Template.Spec.Containers) == 0 }

// outlineOf is what's read of a Job without a sync: which one it is, whose, and whether it goes.
func outlineOf(job *batchv1.Job) *batchv1.Job {
	outline := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: job.Namespace, Name: job.Name, UID: job.UID, ResourceVersion: job.ResourceVersion, Generation: job.Generation,
			CreationTimestamp: job.CreationTimestamp, DeletionTimestamp: job.DeletionTimestamp,
		},
		Spec: batchv1.JobSpec{ManagedBy: job.Spec.ManagedBy, TTLSecondsAfterFinished: job.Spec.TTLSecondsAfterFinished},
	}
	if origin, has := job.Labels[v1alpha1.LabelOrigin]; has {
		outline.Labels = map[string]string{v1alpha1.LabelOrigin: origin}
	}
	if v1alpha1.IsFenced(job) {
		outline.Annotations = map[string]string{v1alpha1.AnnotationFenced: ""}
	}
	return outline
}

// maxReadValue bounds the values of readAnnotations: they are numbers.
const maxReadValue = 16

// readAnnotations are the annotations of Pods that package plan reads.
var readAnnotations = []string{
	batchv1.JobCompletionIndexAnnotation, batchv1.JobIndexFailureCountAnnotation, batchv1.JobIndexIgnoredFailureCountAnnotation,
}

// pod keeps what of a Pod this package and package plan read.
func (s slimming) pod(object any) (any, error) {
	p, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil // a tombstone, or slim already
	}
	others, finalizers := metav1.GetControllerOfNoCopy(p) != nil && jobRef(p) == nil, s.finalizers(p)
	if others && len(finalizers) == 0 {
		// A Pod takes much memory even if it's empty.
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion,
		}}, nil
	}
	slim := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion,
		CreationTimestamp: p.CreationTimestamp, DeletionTimestamp: p.DeletionTimestamp, DeletionGracePeriodSeconds: p.DeletionGracePeriodSeconds,
		Finalizers: finalizers,
	}}
	if owner := metav1.GetControllerOf(p); owner != nil { // a Pod may have 85,000
		if owner.Size() > mirror.MaxHeldOwner {
			owner = &metav1.OwnerReference{Controller: owner.Controller} // of whatever: no Job
		}
		slim.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	if others {
		return slim, nil
	}
	slim.Labels = slimLabels(p.Labels)
	for _, key := range readAnnotations {
		if value, ok := p.Annotations[key]; ok {
			if len(value) > maxReadValue {
				value = "no number"
			}
			metav1.SetMetaDataAnnotation(&slim.ObjectMeta, key, value)
		}
	}
	slim.Spec.NodeName = p.Spec.NodeName
	slim.Status.Phase = p.Status.Phase
	for i := range p.Status.Conditions {
		c := &p.Status.Conditions[i]
		slim.Status.Conditions = append(slim.Status.Conditions,
			corev1.PodCondition{Type: c.Type, Status: c.Status, LastTransitionTime: c.LastTransitionTime})
	}
	slim.Status.ContainerStatuses = slimStatuses(p.Status.ContainerStatuses, nil)
	if len(p.Status.InitContainerStatuses) > 0 {
		sidecars := sidecarsOf(p)
		slim.Status.InitContainerStatuses = slimStatuses(p.Status.InitContainerStatuses, sidecars)
		for _, s := range slim.Status.InitContainerStatuses {
			if sidecars.Has(s.Name) {
				slim.Spec.InitContainers = append(slim.Spec.InitContainers,
					corev1.Container{Name: s.Name, RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)})
			}
		}
	}
	return slim, nil
}

// finalizers are those of the Pod by which it's tracked.
func (s slimming) finalizers(p *corev1.Pod) (tracking []string) {
	for _, o := range s {
		if plan.IsTracked(p, o.TrackingFinalizer) {
			tracking = append(tracking, o.TrackingFinalizer)
		}
	}
	return tracking
}

const (
	// maxLabelBytes bounds what is held of a Pod's labels: a template gives them to all Pods of a Job.
	maxLabelBytes = 16 << 10
	labelBytes    = 32 // what a label takes beside its text
)

func slimLabels(labels map[string]string) map[string]string {
	size := 0
	for key, value := range labels {
		size += labelBytes + len(key) + len(value)
	}
	if size > maxLabelBytes {
		return map[string]string{plan.LabelsLeftOut: ""}
	}
	return labels
}

// sidecarsOf are the names of the init containers that run on.
func sidecarsOf(p *corev1.Pod) sets.Set[string] {
	sidecars := sets.Set[string]{}
	for i := range p.Spec.InitContainers {
		if c := &p.Spec.InitContainers[i]; plan.IsSidecar(c) {
			sidecars.Insert(c.Name)
		}
	}
	return sidecars
}

const (
	// maxStatuses is how many containers of a Pod are held. A template gives any number to many Pods.
	maxStatuses = 64
	// maxNamed is how many of them are held of a kind that is held already.
	maxNamed = maxStatuses - 8
)

// statusKind is what containers have in common of which one can stand for the others.
type statusKind struct {
	isSidecar, hasEnded bool
	exitCode            int32
}

// slimStatuses keeps what is read of containers. If there are too many, one of each kind stands for
// the others: it has their restarts, and the end of the last one.
func slimStatuses(all []corev1.ContainerStatus, sidecars sets.Set[string]) (slim []corev1.ContainerStatus) {
	held := map[statusKind]int{}
	for i := range all {
		s := corev1.ContainerStatus{Name: all[i].Name, RestartCount: all[i].RestartCount}
		kind := statusKind{isSidecar: sidecars.Has(s.Name)}
		if end := all[i].State.Terminated; end != nil {
			kind.hasEnded, kind.exitCode = true, end.ExitCode
			s.State.Terminated = &corev1.ContainerStateTerminated{ExitCode: end.ExitCode, FinishedAt: end.FinishedAt}
		}
		at, known := held[kind]
		isQuiet := !kind.hasEnded && s.RestartCount == 0 // nothing else is read of it
		switch {
		case known && (isQuiet || len(slim) >= maxNamed):
			slim[at].RestartCount += s.RestartCount
			if kind.hasEnded && slim[at].State.Terminated.FinishedAt.Before(&s.State.Terminated.FinishedAt) {
				slim[at].State.Terminated.FinishedAt = s.State.Terminated.FinishedAt
			}
		case len(slim) < maxStatuses:
			held[kind] = len(slim)
			slim = append(slim, s)
		}
	}
	return slim
}
