package main

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/profile"
)

// schedule binds one Pod after the other, and counts those for which there was a node.
func schedule(
	ctx context.Context, namespaces []*corev1.Namespace, nodes []*corev1.Node, running, pods []*corev1.Pod,
) (bound int64, message string, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := newScheduler(ctx, namespaces)
	if err != nil {
		return 0, "", err
	}
	logger := klog.FromContext(ctx)
	for _, n := range nodes {
		s.Cache.AddNode(logger, n)
	}
	for _, p := range running {
		if err := s.Cache.AddPod(logger, p); err != nil {
			return 0, "", err
		}
	}
	for _, p := range pods {
		node, err := s.nodeFor(ctx, p)
		if refusal, is := errors.AsType[*framework.FitError](err); is {
			message = refusal.Error()
			continue
		} else if errors.Is(err, scheduler.ErrNoNodesAvailable) {
			message = err.Error()
			continue
		} else if err != nil {
			return bound, message, err
		}
		bound++
		there := p.DeepCopy()
		there.Spec.NodeName = node
		if err := s.Cache.AddPod(logger, there); err != nil {
			return bound, message, err
		}
	}
	return bound, message, nil
}

// oneWorker is a scheduler for which nothing else happens.
type oneWorker struct {
	*scheduler.Scheduler
	framework framework.Framework
}

func newScheduler(ctx context.Context, namespaces []*corev1.Namespace) (*oneWorker, error) {
	objects := make([]runtime.Object, 0, len(namespaces))
	for _, n := range namespaces {
		objects = append(objects, n)
	}
	client := fake.NewClientset(objects...)
	factory := informers.NewSharedInformerFactory(client, 0)
	recorder := profile.NewRecorderFactory(events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()}))
	s, err := scheduler.New(ctx, client, factory, nil, recorder)
	if err != nil {
		return nil, err
	}
	known := factory.Core().V1().Namespaces().Informer().GetIndexer()
	for _, n := range namespaces {
		if err := known.Add(n); err != nil {
			return nil, err
		}
	}
	return &oneWorker{s, s.Profiles[corev1.DefaultSchedulerName]}, nil
}

// nodeFor is the scheduler's choice.
func (s *oneWorker) nodeFor(ctx context.Context, pod *corev1.Pod) (string, error) {
	snapshot, is := s.framework.SnapshotSharedLister().(*cache.Snapshot)
	if !is {
		return "", fmt.Errorf("the scheduler's snapshot is a %T", s.framework.SnapshotSharedLister())
	}
	if err := s.Cache.UpdateSnapshot(klog.FromContext(ctx), snapshot); err != nil {
		return "", err
	}
	info, err := framework.NewPodInfo(pod)
	if err != nil {
		return "", err
	}
	var result scheduler.ScheduleResult
	switch schedulePod := any(s.SchedulePod).(type) {
	case func(context.Context, framework.Framework, fwk.CycleState, *corev1.Pod) (scheduler.ScheduleResult, error): // until 1.34
		result, err = schedulePod(ctx, s.framework, framework.NewCycleState(), pod)
	case func(context.Context, framework.Framework, fwk.CycleState, *framework.QueuedPodInfo) (scheduler.ScheduleResult, error):
		result, err = schedulePod(ctx, s.framework, framework.NewCycleState(), &framework.QueuedPodInfo{PodInfo: info})
	default:
		return "", fmt.Errorf("this release's SchedulePod is a %T", schedulePod)
	}
	return result.SuggestedHost, err
}
