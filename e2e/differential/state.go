package main

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/worker/workertest"
)

// state is what a user can see of a Job and its Pods, but for times, UIDs and the random parts of
// names.
type state struct {
	job     string
	classes []string // of the Pods, sorted, each as often as there are such Pods
	pods    []*corev1.Pod
	spec    batchv1.JobSpec

	seen    bool // there is a Job, or has been one
	gone    bool // there has been one
	done    bool // it's finished, being deleted, or gone
	ending  bool // it's finished, or will be once its Pods have ended
	stopped bool // it's suspended, and has no Pods any more
}

func (s state) String() string { return s.job + "\n" + strings.Join(s.classes, "\n") }

// state reads the side's cache.
func (s *side) state(job string) state {
	out := state{job: "no Job", seen: s.hasSeen(job)}
	if obj, found, _ := s.jobs.GetByKey(namespace + "/" + job); found {
		out.describe(obj.(*batchv1.Job))
	} else if out.seen {
		out.gone, out.done = true, true
	}
	pods, err := s.pods.ByIndex(jobLabel, job)
	if err != nil {
		panic(err) // there is such an index
	}
	for _, obj := range pods {
		out.pods = append(out.pods, obj.(*corev1.Pod))
	}
	slices.SortFunc(out.pods, func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(class(a), class(b)), cmp.Compare(a.Name, b.Name))
	})
	for _, p := range out.pods {
		out.classes = append(out.classes, class(p))
	}
	return out
}

// describe takes over what there is to know of a Job. Of one that is being deleted it's only that:
// whether the garbage collector or the Job controller comes to a Pod first decides the counters.
func (s *state) describe(j *batchv1.Job) {
	s.spec, s.job = j.Spec, describeJob(j)
	if j.DeletionTimestamp != nil {
		s.job, s.done = "being deleted", true
		return
	}
	s.done = is(j, batchv1.JobComplete, batchv1.JobFailed)
	s.ending = s.done || is(j, batchv1.JobSuccessCriteriaMet, batchv1.JobFailureTarget)
	s.stopped = is(j, batchv1.JobSuspended) && j.Status.Active == 0
}

// What settle may wait for.

func seen(s state) bool { return s.seen }

func gone(s state) bool { return s.gone }

// leftToKubelets: of a Job that is deleted no Pod is tracked, and those that it owns are being
// deleted.
func leftToKubelets(s state) bool {
	return s.seen && !slices.ContainsFunc(s.pods, func(p *corev1.Pod) bool {
		return len(p.Finalizers) > 0 || len(p.OwnerReferences) > 0 && p.DeletionTimestamp == nil
	})
}

func (s state) replacesOnlyFailed() bool {
	return ptr.Deref(s.spec.PodReplacementPolicy, batchv1.TerminatingOrFailed) == batchv1.Failed
}

// order is the order in which the active Pods were created and became ready. Both times are whole
// seconds, so Pods made within one may be of two where a second ends between them, and a Job
// controller deletes the younger first: sides that agree in all else may then, and rightly, differ
// later.
func order(pods []*corev1.Pod) string {
	pods = slices.Clone(pods)
	pods = slices.DeleteFunc(pods, func(p *corev1.Pod) bool { return !workertest.Active(*p) })
	created, ready := ranks(pods, createdAt), ranks(pods, readySince)
	var out []string
	for i, p := range pods {
		out = append(out, fmt.Sprint(class(p), created[i], ready[i]))
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// ranks are the places of the Pods by a time, the same for the same time.
func ranks(pods []*corev1.Pod, at func(*corev1.Pod) int64) []int {
	var times []int64
	for _, p := range pods {
		times = append(times, at(p))
	}
	distinct := slices.Compact(slices.Sorted(slices.Values(times)))
	out := make([]int, len(times))
	for i, t := range times {
		out[i], _ = slices.BinarySearch(distinct, t)
	}
	return out
}

func createdAt(p *corev1.Pod) int64 { return p.CreationTimestamp.Unix() }

// readySince is 0 for a Pod that isn't ready.
func readySince(p *corev1.Pod) int64 {
	if c := readyCondition(p); c != nil {
		return c.LastTransitionTime.Unix()
	}
	return 0
}

// readyCondition is nil if the Pod isn't ready.
func readyCondition(p *corev1.Pod) *corev1.PodCondition {
	i := slices.IndexFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
	if i < 0 {
		return nil
	}
	return &p.Status.Conditions[i]
}

// is reports whether the Job has one of the conditions.
func is(j *batchv1.Job, kinds ...batchv1.JobConditionType) bool {
	return slices.ContainsFunc(j.Status.Conditions, func(c batchv1.JobCondition) bool {
		return slices.Contains(kinds, c.Type) && c.Status == corev1.ConditionTrue
	})
}

func describeJob(j *batchv1.Job) string {
	var b strings.Builder
	s := &j.Status
	uncounted := ptr.Deref(s.UncountedTerminatedPods, batchv1.UncountedTerminatedPods{})
	fmt.Fprintf(&b, "active=%d ready=%s terminating=%s succeeded=%d failed=%d uncounted=%d/%d completed=%q failedIndexes=%s started=%v ended=%v",
		s.Active, number(s.Ready), number(s.Terminating), s.Succeeded, s.Failed, len(uncounted.Succeeded), len(uncounted.Failed),
		s.CompletedIndexes, ptr.Deref(s.FailedIndexes, "-"), s.StartTime != nil, s.CompletionTime != nil)
	conditions := slices.SortedFunc(slices.Values(s.Conditions), func(a, b batchv1.JobCondition) int { return cmp.Compare(a.Type, b.Type) })
	for _, c := range conditions {
		fmt.Fprintf(&b, "\n  %s=%s %s %q", c.Type, c.Status, c.Reason, withoutPodName(j.Name, c.Message))
	}
	return b.String()
}

func number(n *int32) string {
	if n == nil {
		return "-"
	}
	return fmt.Sprint(*n)
}

// withoutPodName cuts the random end of Pods' names off. Which Pod of a class a message names is
// chance.
func withoutPodName(job, message string) string {
	return regexp.MustCompile(regexp.QuoteMeta(job)+`(-\d+)?-[a-z0-9]{5}\b`).ReplaceAllString(message, "<pod>")
}

// class describes a Pod. Equal Pods of a Job are of one class.
func class(p *corev1.Pod) string {
	labels := maps.Clone(p.Labels)
	for _, key := range []string{"controller-uid", "batch.kubernetes.io/controller-uid"} {
		if labels[key] != "" && labels[key] != elsewhere {
			labels[key] = "<uid>"
		}
	}
	var env []string
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		for _, e := range c.Env {
			env = append(env, c.Name+":"+e.Name)
		}
	}
	owner := ""
	for _, r := range p.OwnerReferences {
		owner += fmt.Sprintf("%s/%s controller=%v block=%v ", r.Kind, r.Name, ptr.Deref(r.Controller, false), ptr.Deref(r.BlockOwnerDeletion, false))
	}
	return fmt.Sprintf("  %03d %s%s deleting=%s ready=%v restarts=%d/%d %v %shost=%s name=%s env=%v %v %v", workertest.Index(*p)+1, p.Status.Phase, ends(p), deletion(p), readyCondition(p) != nil,
		restarts(p.Status.InitContainerStatuses), restarts(p.Status.ContainerStatuses), p.Finalizers, owner, p.Spec.Hostname, p.GenerateName, env, p.Annotations, labels)
}

// ends are the containers that have ended, with their exit codes, and a disruption: what a failure
// policy reads. A failure that it ignores isn't one that counts, although the Pods' phase is the
// same.
func ends(p *corev1.Pod) string {
	out := ""
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if end := c.State.Terminated; end != nil {
			out += fmt.Sprintf(" %s:%d", c.Name, end.ExitCode)
		}
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			out += " disrupted"
		}
	}
	return out
}

// deletion is the grace with which a Pod is being deleted, if it is. One without grace is gone once
// it has no finalizer.
func deletion(p *corev1.Pod) string {
	if p.DeletionTimestamp == nil {
		return "no"
	}
	return fmt.Sprintf("%ds", ptr.Deref(p.DeletionGracePeriodSeconds, -1))
}
