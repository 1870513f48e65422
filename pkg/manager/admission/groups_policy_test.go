package admission

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/group"
)

// The policy refuses a Job of a group for what the manager would have it wait for.
func TestGroupsPolicy(t *testing.T) {
	p := loadPolicy(t, "jobs-policy.yaml")
	grouped := func(name string, annotations ...string) *batchv1.Job {
		job := newJob(v1alpha1.ManagedByDispatcher, append(annotations, v1alpha1.AnnotationGroup, name)...)
		job.Spec.Parallelism, job.Spec.Completions = ptr.To[int32](2), ptr.To[int32](10)
		return job
	}
	ofJobSet := func(annotations ...string) *batchv1.Job {
		job := newJob(v1alpha1.ManagedByDispatcher, annotations...)
		job.Spec.Parallelism, job.Spec.Completions = ptr.To[int32](2), ptr.To[int32](10)
		job.OwnerReferences = []metav1.OwnerReference{{APIVersion: "jobset.x-k8s.io/v1alpha2", Kind: "JobSet", Name: "pair", UID: "1", Controller: ptr.To(true)}}
		return job
	}
	kinds := group.Kinds{group.JobSetKind}
	for name, row := range map[string]struct {
		job  *batchv1.Job
		want string
	}{
		"a name":                       {grouped("nightly-1"), ""},
		"no name":                      {grouped("Nightly"), "no name of a group"},
		"an empty name":                {grouped(""), "no name of a group"},
		"a long name":                  {grouped(strings.Repeat("x", 64)), "no name of a group"},
		"several workers":              {grouped("nightly", v1alpha1.AnnotationMaxClusters, "2"), "run in one worker"},
		"of a JobSet":                  {ofJobSet(), ""},
		"of a JobSet, several workers": {ofJobSet(v1alpha1.AnnotationMaxClusters, "2"), "run in one worker"},
		"of a JobSet, a domain":        {ofJobSet(group.AnnotationExclusiveTopology, "rack"), "exclusive-topology"},
		"a domain without a group":     {newJob(v1alpha1.ManagedByDispatcher, group.AnnotationExclusiveTopology, "rack"), ""},
	} {
		got := p.denied(request{object: row.job})
		if row.want == "" && len(got) != 0 || row.want != "" && (len(got) != 1 || !strings.Contains(got[0], row.want)) {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
		if err := kinds.Check(row.job); (err != nil) != (row.want != "") {
			t.Errorf("%s: the manager says %v", name, err)
		}
	}
}

// A Job that is placed stays in its group.
func TestGroupIsFixedOncePlaced(t *testing.T) {
	p := loadPolicy(t, "jobs-policy.yaml")
	in := func(name string, placed bool) *batchv1.Job {
		job := newJob(v1alpha1.ManagedByDispatcher)
		if name != "" {
			job = newJob(v1alpha1.ManagedByDispatcher, v1alpha1.AnnotationGroup, name)
		}
		if placed {
			hubstate.Set(job, hubstate.Changes{hubstate.Cluster: "east"})
		}
		return job
	}
	for name, row := range map[string]struct {
		old, job *batchv1.Job
		refused  bool
	}{
		"another group": {in("a", true), in("b", true), true}, "out of it": {in("a", true), in("", true), true}, "into it": {in("", true), in("a", true), true},
		"the same": {in("a", true), in("a", true), false}, "before it's placed": {in("a", false), in("b", false), false},
	} {
		if got := p.denied(request{old: row.old, object: row.job}); (len(got) > 0) != row.refused {
			t.Errorf("%s: %q", name, got)
		}
	}
}
