package mirror

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// ownDomains are the domains of label and annotation keys that Jobferry and the API server write.
// They stay on the hub, as those of hubDomains do.
var ownDomains = []string{"jobferry.dev", "batch.kubernetes.io"}

// hubDomains are the domains of keys that stay on the hub, with the domains below them: they
// address a controller that would act on the copy in a worker as well.
var hubDomains = []string{
	"kueue.x-k8s.io",
	// Deployers remove what has their marks and isn't in their source.
	"applyset.kubernetes.io",
	"addonmanager.kubernetes.io",
	"argocd.argoproj.io",
	"cattle.io", // Rancher, Fleet, K3s
	"config.k8s.io",
	"configmanagement.gke.io",
	"configsync.gke.io",
	"cli-utils.sigs.k8s.io",
	"crossplane.io",
	"helm.sh",
	"kapp.k14s.io",
	"karmada.io",
	"open-cluster-management.io",
	"toolkit.fluxcd.io",
	// Operators own what has their marks: they count, scale and remove it.
	"keda.sh",
	"workflows.argoproj.io",
	// Janitors remove what has expired, and backups bring back what was there.
	"cleanup.kyverno.io",
	"janitor",
	"velero.io",
	// What distributes ConfigMaps and Secrets would distribute those of the worker.
	"reflector.v1.k8s.emberstack.com",
	"replicator.v1.mittwald.de",
}

// hubKeys are further keys that stay on the hub, for the same reasons.
var hubKeys = []string{
	corev1.LastAppliedConfigAnnotation,
	"app.kubernetes.io/instance", // by which Argo CD knows what it has deployed
	"app.kubernetes.io/managed-by",
	"kubernetes.io/cluster-service",
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

// What is read of Kueue's labels and annotations on hub Jobs.
const (
	// LabelKueueQueue names a Job's LocalQueue.
	LabelKueueQueue = kueuePrefix + "queue-name"
	// LabelReplicatedJob names the part of its JobSet that a Job is made from.
	LabelReplicatedJob = "jobset.sigs.k8s.io/replicatedjob-name"
	// AnnotationKueueMinParallelism lets Kueue admit a Job with less parallelism than it asks for.
	AnnotationKueueMinParallelism = kueuePrefix + "job-min-parallelism"
)

// Keys are keys of labels or annotations; or domains, for all their keys, and those of the domains
// below them.
type Keys []string

// HubKeys are those that an admin keeps on the hub, beside those that stay there in any case.
type HubKeys Keys

// Validate names the first that is neither a key nor a domain.
func (k HubKeys) Validate() error { return Keys(k).Validate() }

// Has reports whether a key is one of them.
func (k Keys) Has(key string) bool { return isOf(key, k) || slices.Contains(k, key) }

// Validate names the first that is neither a key nor a domain.
func (k Keys) Validate() error {
	for _, key := range k {
		if problems := content.IsLabelKey(key); len(problems) > 0 {
			return fmt.Errorf("%q is neither a key of labels nor a domain: %s", key, problems[0])
		}
	}
	return nil
}

// Projected returns the labels or annotations of a hub object that its copy in a worker has, too.
func (k HubKeys) Projected(m map[string]string) map[string]string {
	return filterKeys(m, func(key string) bool {
		return !isOf(key, ownDomains) && !isOf(key, hubDomains) && !slices.Contains(hubKeys, key) && !Keys(k).Has(key)
	})
}

// isOf reports whether a key is of one of some domains, or of one below them.
func isOf(key string, domains []string) bool {
	domain, _, has := strings.Cut(key, "/")
	return has && slices.ContainsFunc(domains, func(of string) bool {
		return domain == of || strings.HasSuffix(domain, "."+of)
	})
}

func manualSelector(job *batchv1.Job) bool { return ptr.Deref(job.Spec.ManualSelector, false) }

// labels returns those of the hub Job that its mirror gets.
func (k HubKeys) labels(hub *batchv1.Job) map[string]string {
	out := k.Projected(hub.Labels)
	if !manualSelector(hub) {
		dropKeys(out, generatedLabels)
	}
	return out
}

// projectTemplate removes what the hub's API server generated and what is for Kueue on the hub, and
// keeps the rest, which is the user's.
func projectTemplate(hub *batchv1.Job) corev1.PodTemplateSpec {
	t := *hub.Spec.Template.DeepCopy()
	selected := selectedKeys(hub)
	notKueue := func(key string) bool { return !strings.HasPrefix(key, kueuePrefix) || selected[key] }
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

// selectedKeys are the labels by which a user's own selector selects Pods.
func selectedKeys(hub *batchv1.Job) map[string]bool {
	if !manualSelector(hub) || hub.Spec.Selector == nil {
		return nil
	}
	keys := map[string]bool{}
	for key := range hub.Spec.Selector.MatchLabels {
		keys[key] = true
	}
	for i := range hub.Spec.Selector.MatchExpressions {
		keys[hub.Spec.Selector.MatchExpressions[i].Key] = true
	}
	return keys
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
