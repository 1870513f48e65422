package admission

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/placement"
)

func podTerms(values int) []corev1.PodAffinityTerm {
	return []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: slices.Repeat([]string{"x"}, values)}},
	}}}
}

func nodeTerms(p *corev1.PodSpec, terms, values int) {
	term := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: slices.Repeat([]string{"x"}, values)},
	}}
	p.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: slices.Repeat([]corev1.NodeSelectorTerm{term}, terms)},
	}}
}

// largeFields make one field of a Pod's spec as large as they're told, in terms or values.
var largeFields = map[string]func(p *corev1.PodSpec, size int){
	"nodeSelector": func(p *corev1.PodSpec, size int) {
		p.NodeSelector = map[string]string{}
		for i := range size / 16 {
			p.NodeSelector[fmt.Sprint("key-", i)] = "x"
		}
	},
	"affinity.nodeAffinity": func(p *corev1.PodSpec, size int) {
		if size%2 == 0 {
			nodeTerms(p, 1, size)
		} else {
			nodeTerms(p, size/16, 1)
		}
	},
	"affinity.podAffinity": func(p *corev1.PodSpec, size int) {
		p.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: podTerms(size)}}
	},
	"affinity.podAntiAffinity": func(p *corev1.PodSpec, size int) {
		p.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: podTerms(size)}}
	},
	"tolerations": func(p *corev1.PodSpec, size int) {
		p.Tolerations = slices.Repeat([]corev1.Toleration{{Key: "x", Operator: corev1.TolerationOpExists}}, size/16)
	},
	"resourceClaims": func(p *corev1.PodSpec, size int) {
		p.ResourceClaims = make([]corev1.PodResourceClaim, size/49)
	},
}

// The policy warns of what no worker is compared with, as large as an API server stores, and of
// nothing that is.
func TestLargeFieldsPolicy(t *testing.T) {
	p := loadPolicy(t, "warnings-policy.yaml")
	for field, change := range largeFields {
		for _, size := range []int{160, 4_000, 5_030, 5_041, 150_000, 1_000_001} {
			job := newJob(v1alpha1.ManagedByDispatcher)
			job.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main"}}
			change(&job.Spec.Template.Spec, size)
			got := p.denied(request{object: job})
			if len(got) > 0 && (len(got) > 1 || !strings.HasPrefix(got[0], "spec.template.spec."+field+": too large")) {
				t.Errorf("%s, %d: %q", field, size, got)
			}
			answer := placement.NewJob(job).Judge(&placement.Snapshot{NodesUnknown: true}, 1)
			if warns, unjudged := len(got) > 0, slices.Contains(answer.Unjudged, "spec.template.spec."+field); warns && !unjudged || !warns && size > 5_040 {
				t.Errorf("%s, %d: there's a warning: %v; it isn't judged: %v", field, size, warns, unjudged)
			}
		}
	}
}

// Whoever creates a Job that stays on the hub for its controller's sake is told.
func TestStaysWithItsController(t *testing.T) {
	p := loadPolicy(t, "warnings-policy.yaml")
	of := func(apiVersion, kind string, controls *bool) *batchv1.Job {
		job := newJob("", "jobferry.dev/unknown", "x") // a second warning, if it's claimed
		job.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Controller: controls}}
		return job
	}
	claimed := of("ray.io/v1", "RayJob", ptr.To(true))
	claimed.Spec.ManagedBy = ptr.To(v1alpha1.ManagedByDispatcher)
	for name, row := range map[string]struct {
		request
		want string
	}{
		"of a RayJob":          {request{object: of("ray.io/v1", "RayJob", ptr.To(true)), namespace: dispatched}, "add RayJob.ray.io to the value dispatch.owners"},
		"of a core object":     {request{object: of("v1", "Pod", ptr.To(true)), namespace: dispatched}, "it belongs to a Pod.v1"},
		"of a JobSet":          {request{object: of("jobset.x-k8s.io/v1alpha2", "JobSet", ptr.To(true)), namespace: dispatched}, "Jobferry takes no notice"},
		"owned, not more":      {request{object: of("ray.io/v1", "RayJob", nil), namespace: dispatched}, "Jobferry takes no notice"},
		"claimed":              {request{object: claimed, namespace: dispatched}, "Jobferry takes no notice"},
		"another namespace":    {request{object: of("ray.io/v1", "RayJob", ptr.To(true))}, ""},
		"a CronJob's template": {request{kind: "cronjobs", object: cron(newJob("")), namespace: dispatched}, ""},
	} {
		got := p.denied(row.request)
		if row.want == "" && len(got) != 0 || row.want != "" && (len(got) != 1 || !strings.Contains(got[0], row.want)) {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
	}
}

// Who gets no warning: whose Jobs aren't Jobferry's.
func TestLargeFieldsOfOthers(t *testing.T) {
	p := loadPolicy(t, "warnings-policy.yaml")
	large := func(managedBy string) *batchv1.Job {
		job := newJob(managedBy)
		nodeTerms(&job.Spec.Template.Spec, 400, 1)
		return job
	}
	for name, row := range map[string]struct {
		request
		warns bool
	}{
		"ours":                         {request{object: large(v1alpha1.ManagedByDispatcher)}, true},
		"somebody else's":              {request{object: large("example.org/other"), namespace: dispatched}, false},
		"nobody's":                     {request{object: large("")}, false},
		"CronJob, ours":                {request{kind: "cronjobs", object: cron(large(v1alpha1.ManagedByDispatcher))}, true},
		"CronJob, by its namespace":    {request{kind: "cronjobs", object: cron(large("")), namespace: dispatched}, true},
		"CronJob, without a namespace": {request{kind: "cronjobs", object: cron(large(""))}, false},
	} {
		if got := p.denied(row.request); (len(got) == 1) != row.warns {
			t.Errorf("%s: %q", name, got)
		}
	}
}
