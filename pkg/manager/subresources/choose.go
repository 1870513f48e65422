package subresources

import (
	"cmp"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Parameters that say which container is meant.
const (
	paramPod       = "pod"
	paramIndex     = "index"
	paramContainer = "container"
)

// defaultContainer is kubectl's annotation for Pods with several containers.
const defaultContainer = "kubectl.kubernetes.io/default-container"

// wanted says which Pod of a Job, and which container of it, a user means.
type wanted struct {
	pod       string // its name; empty: any
	index     string // completion index; empty: any
	container string // empty: the Pod's default
}

func parseWanted(query url.Values) (wanted, error) {
	w := wanted{pod: query.Get(paramPod), index: query.Get(paramIndex), container: query.Get(paramContainer)}
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

// said is the choice in words.
func (w wanted) said() string {
	if w.index != "" {
		return " of index " + w.index
	}
	return ""
}

// selector narrows a Job's selector to what is wanted.
func (w wanted) selector(job *batchv1.Job) (string, error) {
	selector, err := metav1.LabelSelectorAsSelector(job.Spec.Selector)
	if err != nil {
		return "", err
	}
	if _, selectable := selector.Requirements(); !selectable || selector.Empty() { // as text, both would select everything
		return "", fmt.Errorf("the mirror of Job %q has no selector", job.Name)
	}
	narrowed := selector.String()
	if w.index != "" {
		narrowed += "," + batchv1.JobCompletionIndexAnnotation + "=" + w.index
	}
	return narrowed, nil
}

// rank says how well a Pod serves a purpose when the user names none; a higher one wins, among
// equals the newest Pod.
type rank func(*corev1.Pod) int

// forLog prefers Pods that have something to say.
func forLog(p *corev1.Pod) int {
	if p.Status.Phase == corev1.PodPending {
		return 0
	}
	return 1
}

// forExec prefers Pods in which something runs.
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

// better says whether a is the better choice than b.
func (r rank) better(a, b *corev1.Pod) bool {
	return cmp.Or(
		cmp.Compare(r(a), r(b)),
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
		cmp.Compare(a.Name, b.Name),
	) > 0
}

// containerOf decides for a container of a Pod, as kubectl does, but never guesses.
func containerOf(pod *corev1.Pod, asked string) (string, error) {
	var names []string
	for i := range pod.Spec.InitContainers {
		names = append(names, pod.Spec.InitContainers[i].Name)
	}
	for i := range pod.Spec.Containers {
		names = append(names, pod.Spec.Containers[i].Name)
	}
	for i := range pod.Spec.EphemeralContainers {
		names = append(names, pod.Spec.EphemeralContainers[i].Name)
	}
	has := func(name string) bool {
		for _, n := range names {
			if n == name {
				return true
			}
		}
		return false
	}
	switch byDefault := pod.Annotations[defaultContainer]; {
	case asked != "" && has(asked):
		return asked, nil
	case asked != "":
		return "", apierrors.NewBadRequest(fmt.Sprintf("container: Pod %q has no %q, but %s", pod.Name, asked, strings.Join(names, ", ")))
	case has(byDefault):
		return byDefault, nil
	case len(pod.Spec.Containers) == 1:
		return pod.Spec.Containers[0].Name, nil
	default:
		return "", apierrors.NewBadRequest(fmt.Sprintf("container: Pod %q has several, name one of %s", pod.Name, strings.Join(names, ", ")))
	}
}
