package rig

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// attempts numbers the Pods of each Job in the order in which they were first seen. kwok's stages
// see one Pod at a time, so what depends on a Job's earlier Pods is decided here.
type attempts map[types.UID]map[types.UID]int // Job -> Pod -> number, from 1

func (a attempts) number(pod *corev1.Pod) int {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return 1
	}
	pods := a[owner.UID]
	if pods == nil {
		pods = map[types.UID]int{}
		a[owner.UID] = pods
	}
	if pods[pod.UID] == 0 {
		pods[pod.UID] = len(pods) + 1
	}
	return pods[pod.UID]
}

// numberAttempts labels Pods that have LabelFailFirst with their number, until ctx ends. It watches
// those Pods only; anew when again is sent to.
func numberAttempts(ctx context.Context, client kubernetes.Interface, again <-chan struct{}) {
	lw := cache.NewFilteredListWatchFromClient(client.CoreV1().RESTClient(), "pods", metav1.NamespaceAll,
		func(o *metav1.ListOptions) { o.LabelSelector = LabelFailFirst + ",!" + labelAttempt })
	a := attempts{}
	label := func(object any) {
		pod := object.(*corev1.Pod)
		labelPod(ctx, client, pod, a.number(pod))
	}
	for ctx.Err() == nil {
		watching, end := context.WithCancel(ctx)
		go func() {
			defer end()
			select {
			case <-again:
			case <-watching.Done():
			}
		}()
		_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
			ListerWatcher: lw,
			ObjectType:    &corev1.Pod{},
			Handler: cache.ResourceEventHandlerFuncs{
				AddFunc:    label,
				UpdateFunc: func(_, object any) { label(object) },
			},
		})
		informer.RunWithContext(watching)
		end()
	}
}

// labelPod writes the number down, again and again while the API server is away.
func labelPod(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod, number int) {
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"labels":{%q:"%d"}}}`, pod.UID, labelAttempt, number)
	backoff := wait.Backoff{Duration: readyRetry, Factor: 2, Steps: 8, Cap: startTimeout}
	_ = wait.ExponentialBackoffWithContext(ctx, backoff, func(ctx context.Context) (bool, error) {
		_, err := client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		return err == nil || isFinal(err), nil
	}) // a Pod that could not be labelled keeps running, which its test will see
}

// isFinal says whether trying again would not help: the Pod is gone or another one.
func isFinal(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsConflict(err) }
