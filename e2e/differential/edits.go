package main

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/worker/workertest"
)

// sortedStably are the most Pods whose order the built-in's sort keeps where they are equal: which
// of more of them are surplus is a matter of chance.
const sortedStably = 12

func (s script) anyEdit(now state) event {
	spec := now.spec
	suspended := ptr.Deref(spec.Suspend, false)
	switch s.rng.IntN(9) {
	case 0, 1, 2:
		return patched(s.job, "edit", fmt.Sprintf(`{"suspend":%v}`, !suspended))
	case 3:
		if isIndexed(spec) && spec.SuccessPolicy == nil && spec.MaxFailedIndexes == nil {
			n := 1 + s.rng.Int32N(s.most.completions)
			return patched(s.job, "resize", fmt.Sprintf(`{"completions":%d,"parallelism":%d}`, n, n))
		}
	case 4:
		if !suspended && s.rng.IntN(3) == 0 {
			return patched(s.job, "exceed the deadline", `{"activeDeadlineSeconds":1}`)
		}
	case 5:
		if suspended && now.stopped {
			pool := fmt.Sprintf("pool-%d", s.rng.IntN(100))
			return patched(s.job, "edit", fmt.Sprintf(`{"template":{"metadata":{"labels":{"pool":%q}},"spec":{"nodeSelector":{"pool":%q}}}}`, pool, pool))
		}
	}
	parallelism := s.rng.Int32N(s.most.parallelism + 1)
	if active := len(now.fitting(workertest.Active)); isIndexed(spec) && active > sortedStably && parallelism > 0 {
		parallelism = max(parallelism, *spec.Parallelism)
	}
	return patched(s.job, "edit", fmt.Sprintf(`{"parallelism":%d}`, parallelism))
}

func isIndexed(spec batchv1.JobSpec) bool {
	return ptr.Deref(spec.CompletionMode, batchv1.NonIndexedCompletion) == batchv1.IndexedCompletion
}

// patched is an edit of the Job's spec.
func patched(job, what, spec string) event {
	return event{what: what + " " + spec, job: job, edit: func(ctx context.Context, s *side, job string) error {
		_, err := s.Client.BatchV1().Jobs(namespace).Patch(ctx, job, types.MergePatchType, []byte(`{"spec":`+spec+`}`), metav1.PatchOptions{})
		return err
	}}
}

// deleted is the deletion of the Job.
func deleted(job string, policy metav1.DeletionPropagation) event {
	return event{what: "delete the Job, " + string(policy), job: job, edit: func(ctx context.Context, s *side, job string) error {
		return s.Client.BatchV1().Jobs(namespace).Delete(ctx, job, metav1.DeleteOptions{PropagationPolicy: &policy})
	}}
}
