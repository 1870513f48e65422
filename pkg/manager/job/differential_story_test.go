package job

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// jobStory is a Job, what becomes of its completions, and what its user does. The workers are those
// of the run in which it is divided.
type jobStory struct {
	seed    uint64
	job     *batchv1.Job
	fates   []fate
	endless int // the completion whose attempts never end; -1: none
	grace   time.Duration
	edits   []edit
	workers []storyWorker
}

// edit is what happens at a time since the Job's creation.
type edit struct {
	at     time.Duration
	what   string
	change func(*batchv1.Job)
}

type storyWorker struct {
	cpus     int
	embedded bool
	// Its Job controller does nothing in that time.
	idleFrom, idleUntil time.Duration
}

func anyStory(seed uint64) *jobStory {
	random := rand.New(rand.NewPCG(seed, 2))
	s := &jobStory{seed: seed, endless: -1, grace: time.Duration(random.IntN(6)) * time.Second}
	s.job = divisible(1+int32(random.IntN(30)), 1+int32(random.IntN(10)))
	if random.IntN(4) == 0 {
		s.job.Spec.CompletionMode = ptr.To(batchv1.NonIndexedCompletion)
	} else {
		s.anyIndexRules(random)
	}
	if random.IntN(3) == 0 {
		s.job.Spec.PodReplacementPolicy = ptr.To(batchv1.Failed)
	}
	if s.job.Spec.BackoffLimitPerIndex == nil || random.IntN(4) == 0 {
		s.job.Spec.BackoffLimit = ptr.To(int32(random.IntN(25)))
	}
	codes := []int32{exitFails}
	if random.IntN(3) == 0 {
		codes = s.anyFailurePolicy(random)
	}
	for range *s.job.Spec.Completions {
		s.fates = append(s.fates, anyFate(random, codes))
	}
	if random.IntN(8) == 0 {
		s.anyDeadline(random)
	}
	s.anyEdits(random)
	s.anyWorkers(random)
	return s
}

func (s *jobStory) anyDeadline(random *rand.Rand) {
	s.job.Spec.ActiveDeadlineSeconds = ptr.To(int64(20 + random.IntN(300)))
	if random.IntN(2) == 0 {
		s.endless = random.IntN(len(s.fates))
		last := &s.fates[s.endless]
		last.takes[len(last.exits)] = 1000 * time.Hour
	}
}

func (s *jobStory) anyWorkers(random *rand.Rand) {
	for range 2 + random.IntN(3) {
		w := storyWorker{cpus: 1 + random.IntN(8), embedded: random.IntN(2) == 0}
		if random.IntN(4) == 0 {
			w.idleFrom = time.Duration(random.IntN(100)) * time.Second
			w.idleUntil = w.idleFrom + time.Duration(1+random.IntN(60))*time.Second
		}
		s.workers = append(s.workers, w)
	}
}

func (s *jobStory) anyIndexRules(random *rand.Rand) {
	spec := &s.job.Spec
	n := int(*spec.Completions)
	if random.IntN(2) == 0 {
		spec.BackoffLimitPerIndex, spec.BackoffLimit = ptr.To(int32(random.IntN(3))), ptr.To[int32](1<<31-1)
		if random.IntN(2) == 0 {
			spec.MaxFailedIndexes = ptr.To(int32(random.IntN(min(n, 6))))
		}
	}
	if random.IntN(4) > 0 {
		return
	}
	spec.SuccessPolicy = &batchv1.SuccessPolicy{}
	for range 1 + random.IntN(2) {
		var rule batchv1.SuccessPolicyRule
		first := random.IntN(n)
		last := first + random.IntN(n-first)
		if random.IntN(2) == 0 {
			rule.SucceededIndexes = ptr.To(fmt.Sprintf("%d-%d", first, last))
			if first == last {
				rule.SucceededIndexes = ptr.To(fmt.Sprint(first))
			}
		}
		if rule.SucceededIndexes == nil || random.IntN(2) == 0 {
			rule.SucceededCount = ptr.To(int32(1 + last - first))
		}
		spec.SuccessPolicy.Rules = append(spec.SuccessPolicy.Rules, rule)
	}
}

// anyFailurePolicy returns the exit codes that fit the policy; of those that fail the Job only few
// stories have one.
func (s *jobStory) anyFailurePolicy(random *rand.Rand) []int32 {
	s.job.Spec.PodReplacementPolicy = ptr.To(batchv1.Failed)
	codes := []int32{exitFails, exitFails, exitIgnored, exitIgnored}
	actions := map[int32]batchv1.PodFailurePolicyAction{exitFails: batchv1.PodFailurePolicyActionCount, exitIgnored: batchv1.PodFailurePolicyActionIgnore}
	if s.job.Spec.BackoffLimitPerIndex != nil {
		actions[exitFailsIndex], codes = batchv1.PodFailurePolicyActionFailIndex, append(codes, exitFailsIndex)
	}
	if random.IntN(3) == 0 {
		actions[exitFailsJob], codes = batchv1.PodFailurePolicyActionFailJob, append(codes, exitFailsJob)
	}
	s.job.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{}
	for _, code := range slices.Sorted(maps.Keys(actions)) {
		s.job.Spec.PodFailurePolicy.Rules = append(s.job.Spec.PodFailurePolicy.Rules, batchv1.PodFailurePolicyRule{Action: actions[code],
			OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
				Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{code},
			}})
	}
	return codes
}

// anyEdits has the user suspend the Job, resume it, and change its parallelism. In the end it may
// run.
func (s *jobStory) anyEdits(random *rand.Rand) {
	at := time.Duration(0)
	add := func(what string, change func(*batchv1.Job)) {
		at += time.Duration(random.IntN(60)) * time.Second
		s.edits = append(s.edits, edit{at, what, change})
	}
	parallelism := func(p int32) {
		add(fmt.Sprintf("sets parallelism %d", p), func(job *batchv1.Job) { job.Spec.Parallelism = &p })
	}
	if random.IntN(10) == 0 {
		s.job.Spec.Suspend = ptr.To(true)
		add("resumes", suspended(false))
	}
	if random.IntN(3) > 0 {
		return
	}
	for range 1 + random.IntN(3) {
		if random.IntN(2) == 0 {
			add("suspends", suspended(true))
			add("resumes", suspended(false))
		} else {
			parallelism(int32(random.IntN(12)))
		}
	}
	parallelism(1 + int32(random.IntN(12)))
}

// String is what a test that fails prints.
func (s *jobStory) String() string {
	var text strings.Builder
	spec := s.job.Spec.DeepCopy()
	spec.Template.Spec.Containers, spec.Template.Labels, spec.Selector = nil, nil, nil
	job, err := json.Marshal(spec)
	fmt.Fprintf(&text, "story %d: %s%v\ngrace period %s, workers %+v\n", s.seed, job, cmpErr(err), s.grace, s.workers)
	for i, f := range s.fates {
		fmt.Fprintf(&text, "%d: exits %v, takes %v\n", i, f.exits, f.takes)
	}
	for _, e := range s.edits {
		fmt.Fprintf(&text, "%s: %s\n", e.at, e.what)
	}
	return text.String()
}

func cmpErr(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// whole is the Job as the only Job controller of a cluster gets it.
func (s *jobStory) whole() *batchv1.Job {
	job := s.job.DeepCopy()
	job.Spec.ManagedBy = nil
	delete(job.Annotations, v1alpha1.AnnotationMaxClusters)
	return job
}

// due is when the next edit is, or a worker's controller begins or ends to be idle.
func (s *jobStory) due(after time.Duration) (at time.Duration) {
	var times []time.Duration
	for _, e := range s.edits {
		times = append(times, e.at)
	}
	for _, w := range s.workers {
		times = append(times, w.idleFrom, w.idleUntil)
	}
	times = slices.DeleteFunc(times, func(at time.Duration) bool { return at <= after })
	if len(times) == 0 {
		return 0
	}
	return slices.Min(times)
}
