package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/worker/workertest"
)

// event is something that happens to a Job or to one Pod of a class, on both sides alike.
type event struct {
	what string
	job  string
	// pod, if set, is done to one Pod of the class.
	class string
	pod   func(context.Context, *side, corev1.Pod) error
	// patch, if not empty, is applied to the Job.
	patch string
}

func (e event) String() string {
	if e.pod != nil {
		return e.what + " one of" + e.class
	}
	return e.what
}

// apply has it happen on one side.
func (e event) apply(ctx context.Context, s *side) error {
	defer s.noteChange(e.job)
	if e.pod == nil {
		_, err := s.Client.BatchV1().Jobs(namespace).Patch(ctx, e.job, types.MergePatchType, []byte(e.patch), metav1.PatchOptions{})
		return err
	}
	now := s.state(e.job)
	for i, p := range now.pods {
		if now.classes[i] == e.class {
			return e.pod(ctx, s, *p)
		}
	}
	return fmt.Errorf("no Pod of the class %s", e.class)
}

// A kind of event, how often it's chosen, and which Pods it may hit.
type kind struct {
	weight int
	what   string
	fits   func(corev1.Pod) bool
	do     func(context.Context, *side, corev1.Pod) error
}

func exit(code int32, conditions ...corev1.PodConditionType) func(context.Context, *side, corev1.Pod) error {
	return func(ctx context.Context, s *side, p corev1.Pod) error { return s.Exit(ctx, p, code, conditions...) }
}

func deleting(p corev1.Pod) bool { return p.DeletionTimestamp != nil }

func pending(p corev1.Pod) bool { return workertest.Active(p) && p.Status.Phase == corev1.PodPending }

func restartable(p corev1.Pod) bool {
	return workertest.Active(p) && p.Spec.RestartPolicy == corev1.RestartPolicyOnFailure
}

var kinds = []kind{
	{3, "run", pending, func(ctx context.Context, s *side, p corev1.Pod) error { return s.Run(ctx, p) }},
	{6, "succeed", workertest.Active, exit(0)},
	{3, "fail", workertest.Active, exit(1)},
	{2, "fail, to be ignored", workertest.Active, exit(codeIgnore)},
	{1, "fail, to fail more", workertest.Active, exit(codeFail)},
	{1, "disrupt", workertest.Active, exit(codeDisrupted, corev1.DisruptionTarget)},
	{2, "delete", workertest.Active, func(ctx context.Context, s *side, p corev1.Pod) error {
		return s.Client.CoreV1().Pods(namespace).Delete(ctx, p.Name, metav1.DeleteOptions{})
	}},
	{3, "terminate", deleting, func(ctx context.Context, s *side, p corev1.Pod) error { return s.Terminate(ctx, p) }},
	{1, "succeed while being deleted", deleting, exit(0)},
	{2, "force-delete", func(corev1.Pod) bool { return true }, func(ctx context.Context, s *side, p corev1.Pod) error { return s.Remove(ctx, p) }},
	{3, "restart", restartable, func(ctx context.Context, s *side, p corev1.Pod) error {
		restarts := int32(1)
		for _, c := range p.Status.ContainerStatuses {
			restarts += c.RestartCount
		}
		return s.Restart(ctx, p, restarts)
	}},
	{1, "add an orphan like", workertest.Active, addOrphan},
}

// addOrphan creates a Pod that the Job should adopt: it's like one it has. It comes in a later
// second than the Job's own, as it's chance which of two Pods of the same age is surplus.
func addOrphan(ctx context.Context, s *side, p corev1.Pod) error {
	youngest := int64(0)
	for _, other := range s.state(jobOf(&p)).pods {
		youngest = max(youngest, createdAt(other))
	}
	select {
	case <-time.After(time.Until(time.Unix(youngest+1, 0))):
	case <-ctx.Done():
		return ctx.Err()
	}
	_, err := s.Client.CoreV1().Pods(namespace).Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "orphan-", Labels: p.Labels, Annotations: p.Annotations},
		Spec: corev1.PodSpec{
			RestartPolicy: p.Spec.RestartPolicy, NodeName: workertest.Node,
			Containers: []corev1.Container{{Name: "main", Image: "example.org/main"}},
		},
	}, metav1.CreateOptions{})
	return err
}

// anyEvent chooses what happens next.
func anyEvent(rng *rand.Rand, job string, now state) event {
	if rng.IntN(6) == 0 {
		return anyEdit(rng, job, now.spec)
	}
	total := 0
	for _, k := range kinds {
		total += k.weight
	}
	for range 50 {
		n := rng.IntN(total)
		for _, k := range kinds {
			if n -= k.weight; n >= 0 {
				continue
			}
			if class, found := anyClass(rng, now, k.fits); found {
				return event{what: k.what, job: job, class: class, pod: k.do}
			}
			break
		}
	}
	return anyEdit(rng, job, now.spec)
}

func anyClass(rng *rand.Rand, now state, fits func(corev1.Pod) bool) (string, bool) {
	var found []string
	for i, p := range now.pods {
		if fits(*p) {
			found = append(found, now.classes[i])
		}
	}
	if len(found) == 0 {
		return "", false
	}
	return found[rng.IntN(len(found))], true
}

// anyEdit is something a user does.
func anyEdit(rng *rand.Rand, job string, spec batchv1.JobSpec) event {
	edit := func(what, patch string, args ...any) event {
		return event{what: what + " " + fmt.Sprintf(patch, args...), job: job, patch: `{"spec":` + fmt.Sprintf(patch, args...) + `}`}
	}
	switch rng.IntN(8) {
	case 0, 1, 2:
		return edit("edit", `{"suspend":%v}`, !ptr.Deref(spec.Suspend, false))
	case 3:
		if spec.CompletionMode != nil && *spec.CompletionMode == batchv1.IndexedCompletion && spec.SuccessPolicy == nil && spec.MaxFailedIndexes == nil {
			n := 1 + rng.IntN(6)
			return edit("resize", `{"completions":%d,"parallelism":%d}`, n, n)
		}
	case 4:
		if !ptr.Deref(spec.Suspend, false) && rng.IntN(3) == 0 {
			return edit("exceed the deadline", `{"activeDeadlineSeconds":1}`)
		}
	}
	return edit("edit", `{"parallelism":%d}`, rng.IntN(5))
}
