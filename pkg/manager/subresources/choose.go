package subresources

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Parameters that choose a container.
const (
	paramPod       = "pod"
	paramIndex     = "index"
	paramContainer = "container"
	// paramWorker narrows any request to one worker of a Job that runs in several.
	paramWorker = "worker"
	// paramUID requires a UID of the Pod that is named. Users can't give it.
	paramUID = "uid"
)

var podParams = []string{paramWorker, paramPod, paramIndex, paramContainer}

// defaultContainer is kubectl's annotation for Pods with several containers.
const defaultContainer = "kubectl.kubernetes.io/default-container"

// podChoice is which Pod of a Job, and which container of it, a user chooses.
type podChoice struct {
	pod       string    // its name; empty: any
	uid       types.UID // of the Pod of that name; empty: any
	index     string    // completion index; empty: any
	container string    // empty: the Pod's default
}

func parsePodChoice(query url.Values) (podChoice, error) {
	w := podChoice{
		pod: query.Get(paramPod), uid: types.UID(query.Get(paramUID)), index: query.Get(paramIndex), container: query.Get(paramContainer),
	}
	switch {
	case w.pod != "" && w.index != "":
		return w, apierrors.NewBadRequest("pod and index: only one of them can be given")
	case w.pod != "" && len(validation.IsDNS1123Subdomain(w.pod)) > 0:
		return w, apierrors.NewBadRequest(fmt.Sprintf("pod: %q isn't the name of a Pod", shorten(w.pod)))
	case w.container != "" && len(validation.IsDNS1123Label(w.container)) > 0:
		return w, apierrors.NewBadRequest(fmt.Sprintf("container: %q isn't the name of a container", shorten(w.container)))
	}
	if w.index != "" {
		n, err := strconv.ParseInt(w.index, 10, 32)
		if err != nil || n < 0 {
			return w, apierrors.NewBadRequest(fmt.Sprintf("index: %q isn't a completion index, which is a number from 0", shorten(w.index)))
		}
		w.index = strconv.FormatInt(n, 10) // as the label has it
	}
	return w, nil
}

// describe returns the choice in words, for a message.
func (w podChoice) describe() string {
	if w.index != "" {
		return " of index " + w.index
	}
	return ""
}

// maxSelectorBytes bounds a mirror's selector, which becomes a part of a URL. Each invalid label
// value becomes an error of some hundred bytes.
const maxSelectorBytes = 16 << 10

// selectorOf returns the selector of a mirror's Pods as text.
func selectorOf(job *batchv1.Job) (string, error) {
	if job.Spec.Selector.Size() > maxSelectorBytes {
		return "", fmt.Errorf("the selector of the mirror of Job %q is larger than %d KiB", job.Name, maxSelectorBytes>>10)
	}
	selector, err := metav1.LabelSelectorAsSelector(job.Spec.Selector)
	if err != nil { // whose text takes quadratic time
		return "", fmt.Errorf("the mirror of Job %q has an invalid selector", job.Name)
	}
	// as text, both would select everything
	if _, selectable := selector.Requirements(); !selectable || selector.Empty() {
		return "", fmt.Errorf("the mirror of Job %q has no selector", job.Name)
	}
	return selector.String(), nil
}

// narrow narrows a selector to the choice.
func (w podChoice) narrow(selector string) string {
	if w.index != "" {
		selector += "," + batchv1.JobCompletionIndexAnnotation + "=" + w.index
	}
	return selector
}

// rank orders Pods for a user who names none: the highest wins, among equals the newest Pod.
type rank func(*corev1.Pod) int

// forLog prefers Pods that have started.
func forLog(p *corev1.Pod) int {
	if p.Status.Phase == corev1.PodPending {
		return 0
	}
	return 1
}

// forExec prefers Pods that run.
func forExec(p *corev1.Pod) int {
	switch {
	case p.Status.Phase != corev1.PodRunning:
		return 0
	case p.DeletionTimestamp != nil:
		return 1
	default:
		return 2
	}
}

// better reports whether a ranks before b.
func (r rank) better(a, b *corev1.Pod) bool {
	return cmp.Or(
		cmp.Compare(r(a), r(b)),
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
		cmp.Compare(a.Name, b.Name),
	) > 0
}

// maxContainers bounds the containers of a Pod, of each kind, that one can be chosen of.
const maxContainers = 200

// slim returns what is used of a Pod that may be chosen, which is held while others are read.
func slim(pod *corev1.Pod) *corev1.Pod {
	is := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name,
			CreationTimestamp: pod.CreationTimestamp, DeletionTimestamp: pod.DeletionTimestamp,
		},
		Spec: corev1.PodSpec{
			NodeName: pod.Spec.NodeName, InitContainers: slimmed(pod.Spec.InitContainers), Containers: slimmed(pod.Spec.Containers),
		},
		Status: corev1.PodStatus{Phase: corev1.PodPhase(shorten(string(pod.Status.Phase)))},
	}
	if name := pod.Annotations[defaultContainer]; name != "" {
		is.Annotations = map[string]string{defaultContainer: shorten(name)}
	}
	for _, c := range pod.Spec.EphemeralContainers[:min(maxContainers, len(pod.Spec.EphemeralContainers))] {
		is.Spec.EphemeralContainers = append(is.Spec.EphemeralContainers, corev1.EphemeralContainer{
			EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: c.Name, Stdin: c.Stdin, TTY: c.TTY}})
	}
	return is
}

func slimmed(containers []corev1.Container) (slim []corev1.Container) {
	for i := range containers[:min(maxContainers, len(containers))] {
		slim = append(slim, corev1.Container{Name: containers[i].Name, Stdin: containers[i].Stdin, TTY: containers[i].TTY})
	}
	return slim
}

// containersOf returns all containers of a Pod.
func containersOf(pod *corev1.Pod) []corev1.Container {
	all := slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers)
	for i := range pod.Spec.EphemeralContainers {
		all = append(all, corev1.Container(pod.Spec.EphemeralContainers[i].EphemeralContainerCommon))
	}
	return all
}

// containerOf chooses a container of a Pod as kubectl does, but never guesses.
func containerOf(pod *corev1.Pod, asked string) (*corev1.Container, error) {
	all := containersOf(pod)
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].Name
	}
	found := func(name string) (*corev1.Container, error) { return &all[slices.Index(names, name)], nil }
	switch byDefault := pod.Annotations[defaultContainer]; {
	case slices.Contains(names, asked):
		return found(asked)
	case asked != "":
		return nil, apierrors.NewBadRequest(fmt.Sprintf("container: Pod %q has no %q, but %s", pod.Name, asked, strings.Join(names, ", ")))
	case slices.Contains(names, byDefault):
		return found(byDefault)
	case len(pod.Spec.Containers) == 1:
		return found(pod.Spec.Containers[0].Name)
	default:
		return nil, apierrors.NewBadRequest(fmt.Sprintf("container: Pod %q has several, name one of %s", pod.Name, strings.Join(names, ", ")))
	}
}
