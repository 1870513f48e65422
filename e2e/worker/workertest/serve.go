package workertest

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/cache"
)

// Serve handles the namespace's Pods until ctx ends. It terminates those that are being deleted;
// for each other, decide says whether it ends now, and how.
func (k Kubelet) Serve(ctx context.Context, decide func(corev1.Pod) (code int32, end bool), report func(error)) {
	handle := func(obj any) {
		pod, ok := obj.(*corev1.Pod)
		if !ok || ctx.Err() != nil {
			return
		}
		var err error
		if pod.DeletionTimestamp != nil {
			err = k.Terminate(ctx, *pod)
		} else if code, end := decide(*pod); end && !Ended(*pod) {
			err = k.Exit(ctx, *pod, code)
		}
		if err != nil && ctx.Err() == nil {
			report(err)
		}
	}
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(k.Client.CoreV1().RESTClient(), "pods", k.Namespace, fields.Everything()),
		ObjectType:    &corev1.Pod{},
		ResyncPeriod:  time.Second, // decide may change its mind
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    handle,
			UpdateFunc: func(_, obj any) { handle(obj) },
		},
	})
	informer.RunWithContext(ctx)
}
