package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/binaries"
)

// cluster is a player: the real scheduler, in a cluster without kubelets.
type cluster struct {
	rig    *rig.Cluster
	client kubernetes.Interface

	mu sync.Mutex
	// fates of the Pods with the role label, by UID.
	fates map[types.UID]fate
	// changed is closed and made anew when a fate changes.
	changed chan struct{}
}

// fate of a Pod: the scheduler has bound it, or said why not.
type fate struct {
	bound   bool
	message string
}

func newCluster(ctx context.Context, release string) (*cluster, error) {
	rigged, err := rig.Start(ctx, rig.Options{
		Name: "judged", Release: binaries.Release(release), Kubelets: true, JobController: rig.None,
		APIServerFlags: []string{"--disable-admission-plugins=ServiceAccount", "--event-ttl=5m"},
	})
	if err != nil {
		return nil, err
	}
	// Its controllers would collect and evict the Pods.
	if err := rigged.Component(binaries.ControllerManager).Kill(); err != nil {
		return nil, errors.Join(err, rigged.Stop())
	}
	config := rigged.RESTConfig()
	config.ContentType = runtime.ContentTypeProtobuf
	config.WarningHandler = rest.NoWarnings{}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, errors.Join(err, rigged.Stop())
	}
	s := &cluster{rig: rigged, client: client, fates: map[types.UID]fate{}, changed: make(chan struct{})}
	s.watch(ctx)
	return s, nil
}

// watch keeps the fates.
func (s *cluster) watch(ctx context.Context) {
	pods := cache.NewFilteredListWatchFromClient(s.client.CoreV1().RESTClient(), "pods", "", func(o *metav1.ListOptions) {
		o.LabelSelector, o.FieldSelector = roleLabel, fields.Everything().String()
	})
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: pods, ObjectType: &corev1.Pod{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { s.note(o.(*corev1.Pod)) },
			UpdateFunc: func(_, o any) { s.note(o.(*corev1.Pod)) },
			DeleteFunc: s.forget,
		},
	})
	go informer.RunWithContext(ctx)
}

func (s *cluster) note(pod *corev1.Pod) {
	f := fate{bound: pod.Spec.NodeName != ""}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			f.message = c.Message
		}
	}
	if !f.bound && f.message == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fates[pod.UID] = f
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *cluster) forget(o any) {
	if tombstone, is := o.(cache.DeletedFinalStateUnknown); is {
		o = tombstone.Obj
	}
	if pod, is := o.(*corev1.Pod); is {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.fates, pod.UID)
	}
}

// until waits for a condition over fates.
func (s *cluster) until(ctx context.Context, holds func(map[types.UID]fate) bool) error {
	for {
		s.mu.Lock()
		done, changed := holds(s.fates), s.changed
		s.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the scheduler hasn't tried all Pods: %w", context.Cause(ctx))
		case <-changed:
		}
	}
}

// decided waits until each Pod has been bound, or found unschedulable, and returns the fates.
func (s *cluster) decided(ctx context.Context, pods []*corev1.Pod) ([]fate, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	fates := make([]fate, len(pods))
	err := s.until(ctx, func(known map[types.UID]fate) bool {
		for i, pod := range pods {
			f, has := known[pod.UID]
			if !has {
				return false
			}
			fates[i] = f
		}
		return true
	})
	return fates, err
}

// caughtUp returns when the scheduler knows all nodes that exist: it has bound a Pod to the newest.
func (s *cluster) caughtUp(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	name := id + "-newest"
	newest := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"newest": id}},
		Status:     corev1.NodeStatus{Allocatable: corev1.ResourceList{"pods": quantity("1")}, Capacity: corev1.ResourceList{"pods": quantity("1")}},
	}
	if _, err := s.client.CoreV1().Nodes().Create(ctx, newest, metav1.CreateOptions{}); err != nil {
		return err
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{roleLabel: "newest"}},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{"newest": id},
			Containers:   []corev1.Container{{Name: "main", Image: "image"}},
		},
	}
	made, err := s.client.CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	err = s.until(ctx, func(known map[types.UID]fate) bool { return known[made.UID].bound })
	return errors.Join(err,
		s.client.CoreV1().Pods("default").Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}),
		s.client.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{}))
}

func (s *cluster) stop() error { return s.rig.Stop() }
