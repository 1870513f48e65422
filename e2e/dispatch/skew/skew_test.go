package skew_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/binaries"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
)

// pair of a hub and its worker, with different releases.
type pair struct {
	name        string
	hub, worker rig.Options
}

// pairs are those that the environment asks for, or the newest with the oldest, both ways round.
func pairs() []pair {
	if binaries.Asked() {
		return []pair{newPair("asked for", binaries.Hub(binaries.Current), binaries.Worker(binaries.Current))}
	}
	return []pair{
		newPair("new hub", binaries.Current, binaries.Oldest),
		newPair("old hub", binaries.Oldest, binaries.Current),
	}
}

func newPair(name string, hub, worker binaries.Release) pair {
	cluster := strings.ReplaceAll(name, " ", "-")
	return pair{
		name:   name,
		hub:    rig.Options{Name: cluster, Release: hub},
		worker: rig.Options{Name: cluster + "-worker", Release: worker, Nodes: []rig.Nodes{{Count: 2}}},
	}
}

func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "12"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	var clusters []rig.Options
	for _, pair := range pairs() {
		clusters = append(clusters, pair.hub, pair.worker)
	}
	rigtest.Main(m, clusters...)
}

func TestHubAndWorkerOfDifferentReleases(t *testing.T) {
	for _, pair := range pairs() {
		t.Run(pair.name, func(t *testing.T) {
			hub, worker := pair.hub.Name, pair.worker.Name
			f := ferrytest.ForHub(t, hub)
			f.RunManager()
			f.Register(worker)
			for _, k := range kinds {
				t.Run(k.name, func(t *testing.T) {
					t.Parallel()
					k.run(t, ferrytest.ForHub(t, hub), worker)
				})
			}
			t.Run("suspended, edited, resumed, deleted", func(t *testing.T) {
				t.Parallel()
				lives(t, ferrytest.ForHub(t, hub), worker)
			})
		})
	}
}

// kind is a kind of Job, and how it ends.
type kind struct {
	name    string
	options []rigtest.Option
	end     batchv1.JobConditionType
	reason  string
	// completed and failed indexes.
	completed, failed string
}

var kinds = []kind{
	{"parallel", []rigtest.Option{rigtest.Parallel(5)}, batchv1.JobComplete, batchv1.JobReasonCompletionsReached, "", ""},
	{"indexed", []rigtest.Option{rigtest.Indexed(5)}, batchv1.JobComplete, batchv1.JobReasonCompletionsReached, "0-4", ""},
	{"backoffLimit", []rigtest.Option{rigtest.ExitCode(1), rigtest.BackoffLimit(0)},
		batchv1.JobFailed, batchv1.JobReasonBackoffLimitExceeded, "", ""},
	{"backoffLimitPerIndex", []rigtest.Option{rigtest.Indexed(4), rigtest.PodLabel(rig.LabelFailIndexes, "1_2"),
		func(j *batchv1.Job) { j.Spec.BackoffLimitPerIndex = ptr.To[int32](0) }},
		batchv1.JobFailed, batchv1.JobReasonFailedIndexes, "0,3", "1,2"},
	{"podFailurePolicy", []rigtest.Option{rigtest.Parallel(3), rigtest.ExitCode(42), failOn(42)},
		batchv1.JobFailed, batchv1.JobReasonPodFailurePolicy, "", ""},
	{"successPolicy", []rigtest.Option{rigtest.Indexed(2), succeedWithFirst, rigtest.PodLabel(rig.LabelFailIndexes, "1"),
		rigtest.BackoffLimit(100)}, batchv1.JobComplete, batchv1.JobReasonSuccessPolicy, "0", ""},
	{"activeDeadlineSeconds", []rigtest.Option{rigtest.RunForever(),
		func(j *batchv1.Job) { j.Spec.ActiveDeadlineSeconds = ptr.To[int64](2) }},
		batchv1.JobFailed, batchv1.JobReasonDeadlineExceeded, "", ""},
}

func failOn(code int32) rigtest.Option {
	return func(j *batchv1.Job) {
		j.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
			Action: batchv1.PodFailurePolicyActionFailJob,
			OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
				Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{code},
			},
		}}}
	}
}

func succeedWithFirst(j *batchv1.Job) {
	j.Spec.SuccessPolicy = &batchv1.SuccessPolicy{Rules: []batchv1.SuccessPolicyRule{{SucceededIndexes: ptr.To("0")}}}
}

func (k kind) run(t *testing.T, f *ferrytest.Ferry, worker string) {
	f.Submit("job", k.options...)
	f.LeaveWorker(worker)
	job := f.HubJobUntil("job", rigtest.HasCondition(k.end))
	for _, c := range job.Status.Conditions {
		if c.Type == k.end && c.Reason != k.reason {
			t.Errorf("%s with reason %q, want %q", c.Type, c.Reason, k.reason)
		}
	}
	s := job.Status
	if s.CompletedIndexes != k.completed || ptr.Deref(s.FailedIndexes, "") != k.failed {
		t.Errorf("completed %q, failed %q; want %q, %q", s.CompletedIndexes, ptr.Deref(s.FailedIndexes, ""), k.completed, k.failed)
	}
}

func lives(t *testing.T, f *ferrytest.Ferry, worker string) {
	f.Submit("job", rigtest.Parallel(2), rigtest.RunForever())
	f.LeaveWorker(worker)
	f.HubJobUntil("job", rigtest.Running(2))
	f.Patch("job", `{"spec":{"suspend":true}}`)
	f.HubJobUntil("job", func(j *batchv1.Job) bool { return ferrytest.Suspended(j) && j.Status.Active == 0 })
	// Older workers leave the startTime there; the hub of 1.36 takes the edit only without it, or
	// with the condition.
	f.MirrorUntil(worker, "job", ferrytest.Suspended)
	f.Patch("job", `{"spec":{"template":{"spec":{"nodeSelector":{"kubernetes.io/hostname":"node-1"}}}}}`)
	f.Patch("job", `{"spec":{"suspend":false,"parallelism":1}}`)
	f.HubJobUntil("job", rigtest.Running(1))
	for _, pod := range f.Pods(f.Cluster(worker)) {
		if pod.DeletionTimestamp == nil && pod.Spec.NodeName != "node-1" {
			t.Errorf("Pod %s is on node %s", pod.Name, pod.Spec.NodeName)
		}
	}
	f.Delete("job", metav1.DeletePropagationForeground)
	f.HubJobGone("job")
	f.MirrorGone(worker, "job")
}
