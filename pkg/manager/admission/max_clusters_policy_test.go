package admission

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
)

// spanning makes a Job that asks for so many clusters.
func spanning(value string, edits ...func(*batchv1.JobSpec)) *batchv1.Job {
	job := newJob(v1alpha1.ManagedByDispatcher, v1alpha1.AnnotationMaxClusters, value)
	job.Spec.Parallelism, job.Spec.Completions = ptr.To[int32](2), ptr.To[int32](10)
	for _, edit := range edits {
		edit(&job.Spec)
	}
	return job
}

func workQueue(spec *batchv1.JobSpec)     { spec.Completions = nil }
func withSubdomain(spec *batchv1.JobSpec) { spec.Template.Spec.Subdomain = "net" }
func withScheduling(spec *batchv1.JobSpec) {
	spec.Scheduling = &batchv1.JobSchedulingConfiguration{}
}
func defaulted(spec *batchv1.JobSpec) { spec.Parallelism, spec.Completions = nil, nil }
func wider(spec *batchv1.JobSpec)     { spec.Parallelism = ptr.To[int32](3) }

// The policy refuses a Job for what the manager would refuse it, in the same words.
func TestMaxClustersPolicy(t *testing.T) {
	p := loadPolicy(t, "jobs-policy.yaml")
	parts := rapid.SampledFrom([]string{"0", "1", "7", "2147483647", "2147483648", "All", "all", "-", "+", ".", "e", " ", "é", "_"})
	rapid.Check(t, func(t *rapid.T) {
		value := strings.Join(rapid.SliceOfN(parts, 0, 4).Draw(t, "parts"), "")
		job := spanning(value)
		if rapid.Bool().Draw(t, "work queue") {
			workQueue(&job.Spec)
		}
		if rapid.Bool().Draw(t, "subdomain") {
			withSubdomain(&job.Spec)
		}
		if rapid.Bool().Draw(t, "scheduling") {
			withScheduling(&job.Spec)
		}
		got := p.denied(request{object: job})
		_, err := shards.MaxClusters(job)
		if err == nil && len(got) != 0 || err != nil && (len(got) != 1 || got[0] != err.Error()) {
			t.Fatalf("%q: the policy says %q, the manager %v", value, got, err)
		}
	})
}

// The annotation is checked with what it needs of the spec, when either changes.
func TestMaxClustersIsCheckedWhenItChanges(t *testing.T) {
	p := loadPolicy(t, "jobs-policy.yaml")
	const none = "1"
	rows := map[string]struct {
		request
		want string // part of the only message; empty: let through
	}{
		"added to a work queue":           {request{object: spanning("2", workQueue), old: spanning(none, workQueue)}, "set spec.completions, or remove the annotation"},
		"changed through the status":      {request{object: spanning("x"), old: spanning(none), subresource: "status"}, `"x" is neither a number from 1 on nor "All"`},
		"wrong before":                    {request{object: spanning("x", wider), old: spanning("x")}, ""},
		"of somebody else's Job":          {request{object: func() *batchv1.Job { j := spanning("x"); j.Spec.ManagedBy = nil; return j }()}, ""},
		"CronJob, a work queue":           {request{kind: "cronjobs", object: cron(spanning("2", workQueue))}, "a Job without spec.completions is a work queue"},
		"CronJob, completions by default": {request{kind: "cronjobs", object: cron(spanning("2", defaulted))}, ""},
		"CronJob, made a work queue":      {request{kind: "cronjobs", object: cron(spanning("2", workQueue)), old: cron(spanning("2"))}, "is a work queue"},
		"CronJob, given a subdomain":      {request{kind: "cronjobs", object: cron(spanning("2", withSubdomain)), old: cron(spanning("2"))}, "remove the subdomain, or the annotation"},
		"CronJob, wrong before":           {request{kind: "cronjobs", object: cron(spanning("x")), old: cron(spanning("x"))}, ""},
		"CronJob, removed":                {request{kind: "cronjobs", object: cron(newJob(v1alpha1.ManagedByDispatcher)), old: cron(spanning("x"))}, ""},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			got := p.denied(row.request)
			if row.want == "" && len(got) != 0 || row.want != "" && (len(got) != 1 || !strings.Contains(got[0], row.want)) {
				t.Errorf("denied %q, want %q", got, row.want)
			}
		})
	}
}
