package main

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// preemptAtOnce has the scheduler delete its victims before it answers.
func preemptAtOnce() error {
	return utilfeature.DefaultMutableFeatureGate.Set("SchedulerAsyncPreemption=false")
}

// mayPreempt lets new Pods preempt those that run.
func (s *oneWorker) mayPreempt(running []*corev1.Pod) error {
	s.victims = map[types.UID]*corev1.Pod{}
	for _, p := range running {
		s.victims[p.UID] = p
		if err := errors.Join(s.client.Tracker().Add(p.DeepCopy()), s.pods().Add(p)); err != nil {
			return err
		}
	}
	return nil
}

// pods are those that the scheduler's plugins know of.
func (s *oneWorker) pods() cache.Indexer {
	return s.informers.Core().V1().Pods().Informer().GetIndexer()
}

// preempt has the scheduler make room for a Pod that it found no node for; false: it can't.
func (s *oneWorker) preempt(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, refused *framework.FitError) (bool, error) {
	if s.victims == nil {
		return false, nil
	}
	if err := s.pods().Add(pod); err != nil {
		return false, err
	}
	if _, status := s.framework.RunPostFilterPlugins(ctx, state, pod, refused.Diagnosis.NodeToStatus); !status.IsSuccess() {
		return false, nil
	}
	preempted := false
	for uid, victim := range s.victims {
		_, err := s.client.CoreV1().Pods(victim.Namespace).Get(ctx, victim.Name, metav1.GetOptions{})
		if err == nil {
			continue
		} else if !apierrors.IsNotFound(err) {
			return false, err
		}
		if err := errors.Join(s.Cache.RemovePod(klog.FromContext(ctx), victim), s.pods().Delete(victim)); err != nil {
			return false, err
		}
		delete(s.victims, uid)
		preempted = true
	}
	return preempted, nil
}
