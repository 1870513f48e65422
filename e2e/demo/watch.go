package demo

import (
	"context"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/jobferry/jobferry/e2e/demo/scenario"
	"github.com/jobferry/jobferry/e2e/demo/state"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// watched is a resource of the hub, and what its objects mean for the state.
type watched struct {
	client    rest.Interface
	resource  string
	namespace string
	object    runtime.Object
	saw       func(*state.State, any)
	lost      func(*state.State, string)
}

// watchHub starts the watches that update the board; they end with the context. wait returns when
// they have.
func watchHub(ctx context.Context, b *board, hub kubernetes.Interface, workers rest.Interface) (wait func()) {
	var running sync.WaitGroup
	for _, w := range []watched{
		{
			client: workers, resource: "workerclusters", object: &v1alpha1.WorkerCluster{},
			saw:  func(s *state.State, o any) { s.SawWorker(o.(*v1alpha1.WorkerCluster)) },
			lost: (*state.State).LostWorker,
		},
		{
			client: hub.BatchV1().RESTClient(), resource: "jobs", namespace: scenario.Namespace, object: &batchv1.Job{},
			saw:  func(s *state.State, o any) { s.SawJob(o.(*batchv1.Job)) },
			lost: (*state.State).LostJob,
		},
		{
			client: hub.EventsV1().RESTClient(), resource: "events", namespace: scenario.Namespace, object: &eventsv1.Event{},
			saw: func(s *state.State, o any) { sawEvent(s, o.(*eventsv1.Event)) },
		},
		{
			client: hub.CoreV1().RESTClient(), resource: "pods", object: &corev1.Pod{},
			saw: func(s *state.State, o any) { s.SawHubPod(string(o.(*corev1.Pod).UID)) },
		},
	} {
		running.Go(func() { w.run(ctx, b) })
	}
	return running.Wait
}

func (w watched) run(ctx context.Context, b *board) {
	saw := func(o any) { b.update(func(s *state.State) { w.saw(s, o) }) }
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(w.client, w.resource, w.namespace, fields.Everything()),
		ObjectType:    w.object,
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    saw,
			UpdateFunc: func(_, o any) { saw(o) },
			DeleteFunc: func(o any) {
				if key, err := cache.DeletionHandlingObjectToName(o); err == nil && w.lost != nil {
					b.update(func(s *state.State) { w.lost(s, key.Name) })
				}
			},
		},
	})
	informer.RunWithContext(ctx)
}

func sawEvent(s *state.State, e *eventsv1.Event) {
	if e.Regarding.Kind != "Job" {
		return
	}
	s.SawNews(state.News{
		At: eventTime(e), Job: e.Regarding.Name, Reason: e.Reason, Note: e.Note,
		Warning: e.Type == corev1.EventTypeWarning,
	})
}

func eventTime(e *eventsv1.Event) time.Time {
	for _, t := range []time.Time{e.EventTime.Time, e.DeprecatedLastTimestamp.Time} {
		if !t.IsZero() {
			return t
		}
	}
	return e.CreationTimestamp.Time
}

// checkHub asks the hub itself for Pods, in case that the watch was blind.
func checkHub(ctx context.Context, b *board, hub kubernetes.Interface) error {
	pods, err := hub.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	b.update(func(s *state.State) {
		for _, pod := range pods.Items {
			s.SawHubPod(string(pod.UID))
		}
	})
	return nil
}

// workerClusterClient is a client of Jobferry's own API.
func workerClusterClient(config *rest.Config) (rest.Interface, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	config.GroupVersion = &v1alpha1.GroupVersion
	config.APIPath = "/apis"
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	return rest.RESTClientFor(config)
}
