package pods

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"maps"
	"math"
	"slices"
	"unique"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/pods/report"
	"github.com/jobferry/jobferry/pkg/util/decoded"
	"github.com/jobferry/jobferry/pkg/util/objectnames"
)

const (
	// annotationDigest of a shadow Pod is the digest of the report that was written to it last.
	annotationDigest = v1alpha1.KeyPrefix + "report"
	// annotationDefaultContainer is read by kubectl.
	annotationDefaultContainer = "kubectl.kubernetes.io/default-container"
	// maxCommand is how many bytes of commands and arguments a shadow has: each Pod of a Job has its
	// own.
	maxCommand = 4 << 10
)

// nodeName is the name of the Node that stands for a worker.
func nodeName(worker string) string { return v1alpha1.NodePrefix + worker }

// maxDigest and maxContainers bound what is held of a Pod on the hub that says that it's a shadow,
// which somebody else may have made.
const maxDigest, maxContainers = 64, 64

// maxModel is how many bytes of memory that takes of a Job's Pods which a shadow shows.
const maxModel = 64 << 10

// modelOf has of a hub Job what its shadows are made of; nil: it's more than maxModel.
func modelOf(job *batchv1.Job) *batchv1.Job {
	t := &job.Spec.Template
	model := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace, Name: job.Name, UID: job.UID}}
	model.Spec.CompletionMode = job.Spec.CompletionMode
	model.Spec.Template.Labels = t.Labels
	if main, is := t.Annotations[annotationDefaultContainer]; is {
		model.Spec.Template.Annotations = map[string]string{annotationDefaultContainer: main}
	}
	commands := 0
	for _, all := range [][]corev1.Container{t.Spec.InitContainers, t.Spec.Containers} {
		for i := range all {
			for _, s := range slices.Concat(all[i].Command, all[i].Args) {
				commands += len(s)
			}
		}
	}
	model.Spec.Template.Spec = corev1.PodSpec{
		Hostname: t.Spec.Hostname, RestartPolicy: t.Spec.RestartPolicy, TerminationGracePeriodSeconds: t.Spec.TerminationGracePeriodSeconds,
		InitContainers: containersOf(t.Spec.InitContainers, commands <= maxCommand),
		Containers:     containersOf(t.Spec.Containers, commands <= maxCommand),
	}
	if decoded.Size(model) > maxModel {
		return nil
	}
	return model
}

// newShadow makes the shadow of a worker's Pod, after the model of its Job. The hub acts on nothing
// in it.
func newShadow(job *batchv1.Job, name types.NamespacedName, uid types.UID, worker string, from *corev1.Pod) *corev1.Pod {
	t := &job.Spec.Template
	labels := map[string]string{}
	maps.Copy(labels, t.Labels)
	labels[v1alpha1.LabelShadow] = "true"
	annotations := map[string]string{v1alpha1.AnnotationCluster: worker, v1alpha1.AnnotationPodUID: string(uid)}
	if main, is := t.Annotations[annotationDefaultContainer]; is {
		annotations[annotationDefaultContainer] = main
	}
	hostname := t.Spec.Hostname
	if index, is := from.Annotations[batchv1.JobCompletionIndexAnnotation]; is && ptr.Deref(job.Spec.CompletionMode, "") == batchv1.IndexedCompletion {
		maps.Copy(annotations, from.Annotations) // the index and its failures
		labels[batchv1.JobCompletionIndexAnnotation] = index
		hostname = job.Name + "-" + index
	}
	if !objectnames.IsDNSLabel(hostname) { // the hub would refuse the Pod
		hostname = ""
	}
	// Without blockOwnerDeletion, for which some hubs would ask for the right to the Job's finalizers.
	owner := metav1.OwnerReference{APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "Job", Name: job.Name, UID: job.UID, Controller: ptr.To(true)}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: name.Namespace, Name: name.Name, Labels: labels, Annotations: annotations,
			OwnerReferences: []metav1.OwnerReference{owner},
		},
		Spec: corev1.PodSpec{
			NodeName:                      nodeName(worker),
			Hostname:                      hostname,
			InitContainers:                t.Spec.InitContainers,
			Containers:                    t.Spec.Containers,
			RestartPolicy:                 t.Spec.RestartPolicy,
			TerminationGracePeriodSeconds: ptr.To(max(ptr.Deref(t.Spec.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds), 1)),
			Tolerations:                   []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			AutomountServiceAccountToken:  ptr.To(false),
			EnableServiceLinks:            ptr.To(false),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: ptr.To(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
		},
	}
}

// containersOf has what a reader needs, and kubectl for attach.
func containersOf(from []corev1.Container, commands bool) (shown []corev1.Container) {
	for i := range from {
		c := &from[i]
		s := corev1.Container{
			Name: c.Name, Image: c.Image, RestartPolicy: c.RestartPolicy, Stdin: c.Stdin, StdinOnce: c.StdinOnce, TTY: c.TTY,
			Resources: corev1.ResourceRequirements{Requests: c.Resources.Requests, Limits: c.Resources.Limits},
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
		}
		if commands {
			s.Command, s.Args = c.Command, c.Args
		}
		for _, p := range c.Ports {
			s.Ports = append(s.Ports, corev1.ContainerPort{Name: p.Name, ContainerPort: p.ContainerPort, Protocol: p.Protocol})
		}
		shown = append(shown, s)
	}
	return shown
}

// shadow is what is held of a Pod on one of our Nodes.
type shadow struct {
	key types.NamespacedName
	uid types.UID
	// version is the resourceVersion.
	version string
	// worker is that of its Node.
	worker unique.Handle[string]
	// pod is the UID of the worker's Pod that it says it stands for; empty: it's no shadow.
	pod types.UID
	// job is the UID of the one that controls it, and jobName its name; empty: it was orphaned.
	job     types.UID
	jobName string
	// containers are the hashes of their names.
	containers unique.Handle[string]
	// digest of the report that was written last.
	digest string
	phase  unique.Handle[string]

	ready, disrupted, deleting bool
	// kept: it has finalizers.
	kept  bool
	grace int32
	// bytes are what a large one takes when it's decoded; zero: it's none.
	bytes int64
}

// maxShadow is how many bytes of protobuf a Pod has that isn't large: its tenant can make it so.
const maxShadow = 128 << 10

// shadowOf returns what is held of a Pod on the Node of a worker.
func shadowOf(pod *corev1.Pod, worker string) *shadow {
	s := &shadow{
		key: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, uid: pod.UID, version: pod.ResourceVersion,
		worker: unique.Make(worker), phase: unique.Make(string(pod.Status.Phase)),
		ready: report.Ready(&pod.Status), deleting: pod.DeletionTimestamp != nil, kept: len(pod.Finalizers) > 0,
		grace: int32(min(ptr.Deref(pod.DeletionGracePeriodSeconds, 0), 1<<30)),
	}
	for i := range pod.Status.Conditions {
		c := &pod.Status.Conditions[i]
		s.disrupted = s.disrupted || c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue
	}
	if pod.Size() > maxShadow {
		s.bytes = decoded.Size(pod)
	}
	of := types.UID(pod.Annotations[v1alpha1.AnnotationPodUID])
	if pod.Labels[v1alpha1.LabelShadow] != "true" || of == "" || len(of) > objectnames.MaxUID {
		return s // somebody's, who may give it texts of any size
	}
	if owner := metav1.GetControllerOf(pod); owner != nil && owner.Kind == "Job" && len(owner.UID) <= objectnames.MaxUID && len(owner.Name) <= validation.DNS1123SubdomainMaxLength {
		s.job, s.jobName = owner.UID, owner.Name
	}
	var hashes []byte
	for _, all := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range all {
			if len(hashes) < maxContainers*hashSize {
				hashes = append(hashes, hashOf(all[i].Name)...)
			}
		}
	}
	s.pod, s.containers = of, unique.Make(string(hashes))
	if digest := pod.Annotations[annotationDigest]; len(digest) <= maxDigest {
		s.digest = digest
	}
	return s
}

// hashSize is the bytes of a hash. The names themselves may be 100 KB of a tenant's Pod.
const hashSize = 4

var hashSeed = maphash.MakeSeed()

func hashOf(name string) []byte {
	return binary.LittleEndian.AppendUint32(nil, uint32(maphash.String(hashSeed, name)&math.MaxUint32))
}

// hasContainer reports whether one of its containers has a name.
func (s *shadow) hasContainer(name string) bool {
	hash, all := hashOf(name), []byte(s.containers.Value())
	for one := range slices.Chunk(all, hashSize) {
		if bytes.Equal(one, hash) {
			return true
		}
	}
	return false
}

// GetObjectMeta has what a store of client-go reads.
func (s *shadow) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: s.key.Namespace, Name: s.key.Name, UID: s.uid, ResourceVersion: s.version}
}

// GetObjectKind is part of runtime.Object.
func (s *shadow) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject is part of runtime.Object.
func (s *shadow) DeepCopyObject() runtime.Object {
	c := *s
	return &c
}

// size is what it takes when it's decoded, if it's large.
func (s *shadow) size() int64 {
	if s == nil {
		return 0
	}
	return s.bytes
}

// over reports whether it has ended, as the hub has it.
func (s *shadow) over() bool { return report.Over(corev1.PodPhase(s.phase.Value())) }

// isKept reports whether only finalizers keep it: nothing is to be done about it until it changes.
func (s *shadow) isKept() bool { return s.deleting && s.grace == 0 && s.kept }

// isShadow reports whether it says that it stands for a worker's Pod.
func (s *shadow) isShadow() bool { return s.pod != "" }
