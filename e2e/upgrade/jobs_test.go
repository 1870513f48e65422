package upgrade_test

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/chaos/story"
	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// job is a Job whose Pods run until the test ends them.
type job struct {
	story.Story
	// pods is how many there are until the Job ends. stops are those of them that are stopped, as its
	// user suspends the Job.
	pods, stops int
	// progresses: with each step of the test, one Pod succeeds.
	progresses bool
	// starts is how many Pods run at first.
	starts    int32
	succeeded int32
}

// kind is a kind of Job. Those of one kind have the same part in the test.
type kind string

const (
	plain    kind = "plain"
	counted  kind = "counted"
	indexed  kind = "indexed"
	elastic  kind = "elastic"  // its user adds an index, twice
	perIndex kind = "perindex" // its index 0 fails, twice, and for good
	halted   kind = "halted"   // its user suspends and resumes it
	waiting  kind = "waiting"  // its user creates it suspended, and resumes it
	carrying kind = "carrying" // its Pods refer to a ConfigMap
	divided  kind = "divided"  // it runs in both workers
	done     kind = "done"     // it ends before the first upgrade
	deleted  kind = "deleted"  // it's deleted while no manager runs
)

var completed = story.End{Condition: batchv1.JobComplete, Reason: batchv1.JobReasonCompletionsReached, All: true}

// shapes of the kinds that are in one worker.
var shapes = []struct {
	kind    kind
	job     job
	options []rigtest.Option
}{
	{plain, job{pods: 1, starts: 1}, nil},
	{counted, job{pods: 6, starts: 2, progresses: true}, []rigtest.Option{rigtest.Parallel(6), atOnce(2)}},
	{indexed, job{pods: 6, starts: 2, progresses: true}, []rigtest.Option{rigtest.Indexed(6), atOnce(2)}},
	{elastic, job{pods: 5, starts: 3}, []rigtest.Option{rigtest.Indexed(3)}},
	{perIndex, job{pods: 4, starts: 3, Story: story.Story{End: story.End{
		Condition: batchv1.JobFailed, Reason: batchv1.JobReasonFailedIndexes, Failed: 2, FailedIndexes: "0", Succeeded: 2}}},
		[]rigtest.Option{rigtest.Indexed(3), func(j *batchv1.Job) { j.Spec.BackoffLimitPerIndex = ptr.To[int32](1) }}},
	{halted, job{pods: 4, stops: 2, starts: 2}, []rigtest.Option{rigtest.Indexed(2)}},
	{waiting, job{pods: 2}, []rigtest.Option{rigtest.Indexed(2), rigtest.Suspended()}},
	{carrying, job{pods: 1, starts: 1}, []rigtest.Option{usesConfigMap}},
	{done, job{pods: 1, starts: 1}, nil},
	{deleted, job{pods: 1, starts: 1, Story: story.Story{End: story.End{Gone: true}}}, nil},
}

// jobsOf makes all Jobs of a namespace.
func jobsOf(namespace string, copies int) []*job {
	var all []*job
	for number := range copies {
		for _, worker := range []string{builtIn, embedded} {
			for _, shape := range shapes {
				j := shape.job
				options := append([]rigtest.Option{ferrytest.OnWorker(worker)}, shape.options...)
				all = append(all, j.as(shape.kind, namespace, fmt.Sprintf("%s-%s-%d", shape.kind, worker, number), options...))
			}
		}
	}
	// Four Pods of it fit in each worker, beside all that request nothing.
	wide := job{pods: 6, starts: 6, progresses: true}
	return append(all, wide.as(divided, namespace, string(divided), rigtest.Indexed(6), inBoth))
}

func (j job) as(k kind, namespace, name string, options ...rigtest.Option) *job {
	ours := []rigtest.Option{rigtest.ManagedBy(v1alpha1.ManagedByDispatcher), rigtest.RunForever()}
	j.Kind, j.Name = string(k), name
	j.Job = rigtest.Job(namespace, name, append(ours, options...)...)
	if j.End == (story.End{}) {
		j.End = completed
	}
	return &j
}

func atOnce(n int32) rigtest.Option { return func(j *batchv1.Job) { j.Spec.Parallelism = &n } }

func inBoth(j *batchv1.Job) {
	j.Annotations = map[string]string{v1alpha1.AnnotationMaxClusters: v1alpha1.MaxClustersAll}
	j.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("12")}
}

// settings is the ConfigMap that is carried.
const settings = "settings"

func usesConfigMap(j *batchv1.Job) {
	j.Spec.Template.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{
		{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: settings}}},
	}
}
