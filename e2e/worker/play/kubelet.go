package play

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/cache"
)

// Kubelet looks after the namespace's Pods until ctx ends: those that are being deleted it lets go,
// of the others it asks whether they are to end now, and how.
func (h Hand) Kubelet(ctx context.Context, decide func(corev1.Pod) (code int32, end bool), report func(error)) {
	look := func(obj any) {
		pod, ok := obj.(*corev1.Pod)
		if !ok || ctx.Err() != nil {
			return
		}
		var err error
		if pod.DeletionTimestamp != nil {
			err = h.LetGo(ctx, *pod)
		} else if code, end := decide(*pod); end && !Ended(*pod) {
			err = h.Exit(ctx, *pod, code)
		}
		if err != nil && ctx.Err() == nil {
			report(err)
		}
	}
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(h.Client.CoreV1().RESTClient(), "pods", h.Namespace, fields.Everything()),
		ObjectType:    &corev1.Pod{},
		ResyncPeriod:  time.Second, // decide may change its mind
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    look,
			UpdateFunc: func(_, obj any) { look(obj) },
		},
	})
	informer.RunWithContext(ctx)
}
