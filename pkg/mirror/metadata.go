package mirror

import (
	"maps"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// keptOnHub are the prefixes of label and annotation keys that stay on the hub, because they
// address a controller that would act on the mirror as well.
var keptOnHub = []string{
	"jobferry.dev/",
	"batch.kubernetes.io/",
	"kueue.x-k8s.io/",
	"argocd.argoproj.io/", // an Argo CD in the worker would prune the mirror
	corev1.LastAppliedConfigAnnotation,
}

// generatedLabels are the labels that the API server sets on the Pod template of a Job without
// manualSelector, and sometimes, as defaults, on the Job; and SelectPods on that of a mirror.
var generatedLabels = []string{
	v1alpha1.LabelMirrorID,
	"controller-uid",
	"job-name",
	batchv1.ControllerUidLabel,
	batchv1.JobNameLabel,
}

const kueuePrefix = "kueue.x-k8s.io/"

func isProjected(key string) bool {
	return !slices.ContainsFunc(keptOnHub, func(p string) bool { return strings.HasPrefix(key, p) })
}

// ProjectedKeys returns the labels or annotations of a hub object that its copy in a worker has,
// too.
func ProjectedKeys(m map[string]string) map[string]string { return filterKeys(m, isProjected) }

func manualSelector(job *batchv1.Job) bool { return ptr.Deref(job.Spec.ManualSelector, false) }

// userLabels returns the labels of the hub Job that its mirror gets.
func userLabels(hub *batchv1.Job) map[string]string {
	out := filterKeys(hub.Labels, isProjected)
	if !manualSelector(hub) {
		dropKeys(out, generatedLabels)
	}
	return out
}

// userAnnotations returns the annotations of the hub Job that its mirror gets.
func userAnnotations(hub *batchv1.Job) map[string]string {
	return filterKeys(hub.Annotations, isProjected)
}

// projectTemplate removes what the hub's API server generated and what is for Kueue on the hub, and
// keeps the rest, which is the user's.
func projectTemplate(hub *batchv1.Job) corev1.PodTemplateSpec {
	t := *hub.Spec.Template.DeepCopy()
	notKueue := func(key string) bool {
		return !strings.HasPrefix(key, kueuePrefix) || (manualSelector(hub) && selects(hub, key))
	}
	t.Labels = filterKeys(t.Labels, notKueue)
	t.Annotations = filterKeys(t.Annotations, notKueue)
	if !manualSelector(hub) {
		dropKeys(t.Labels, generatedLabels)
	}
	t.Spec.SchedulingGates = slices.DeleteFunc(t.Spec.SchedulingGates, func(g corev1.PodSchedulingGate) bool {
		return strings.HasPrefix(g.Name, kueuePrefix)
	})
	if len(t.Spec.SchedulingGates) == 0 {
		t.Spec.SchedulingGates = nil
	}
	return t
}

func selects(hub *batchv1.Job, key string) bool {
	if hub.Spec.Selector == nil {
		return false
	}
	if _, ok := hub.Spec.Selector.MatchLabels[key]; ok {
		return true
	}
	for _, e := range hub.Spec.Selector.MatchExpressions {
		if e.Key == key {
			return true
		}
	}
	return false
}

func filterKeys(m map[string]string, keep func(string) bool) map[string]string {
	out := map[string]string{}
	for k, v := range m {
		if keep(k) {
			out[k] = v
		}
	}
	return out
}

func dropKeys(m map[string]string, keys []string) {
	for _, k := range keys {
		delete(m, k)
	}
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
