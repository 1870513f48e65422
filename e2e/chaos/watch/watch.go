package watch

import (
	"context"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/jobferry/jobferry/e2e/chaos/checker"
)

// Sink gets what is seen, from several goroutines, in order for each object. It sets the time.
type Sink func(checker.Event)

// backoff between two tries.
var backoff = wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Steps: 4, Cap: time.Second, Jitter: 0.1}

// Client makes a client of a cluster that costs little.
func Client(config *rest.Config) (kubernetes.Interface, error) {
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	config.UserAgent = "jobferry-chaos"
	return kubernetes.NewForConfig(config)
}

// Jobs watches the Jobs of a namespace, or of all, until ctx ends; anew when again is sent to.
func Jobs(ctx context.Context, cluster string, client kubernetes.Interface, namespace string, sink Sink, again <-chan struct{}) {
	run(ctx, cluster, client.BatchV1().RESTClient(), "jobs", namespace, &batchv1.Job{}, sink, again)
}

// Pods watches the Pods of a namespace, or of all, until ctx ends.
func Pods(ctx context.Context, cluster string, client kubernetes.Interface, namespace string, sink Sink, again <-chan struct{}) {
	run(ctx, cluster, client.CoreV1().RESTClient(), "pods", namespace, &corev1.Pod{}, sink, again)
}

// Events watches the events of a namespace, or of all, until ctx ends.
func Events(ctx context.Context, cluster string, client kubernetes.Interface, namespace string, sink Sink, again <-chan struct{}) {
	run(ctx, cluster, client.CoreV1().RESTClient(), "events", namespace, &corev1.Event{}, sink, again)
}

// run watches anew whenever it's told to: a cluster whose revision went back answers a watch that
// continues with nothing.
func run(ctx context.Context, cluster string, client rest.Interface, resource, namespace string, kind runtime.Object, sink Sink, again <-chan struct{}) {
	lw := cache.NewListWatchFromClient(client, resource, namespace, fields.Everything())
	seen := newStore(cluster, sink)
	for ctx.Err() == nil {
		watching, end := context.WithCancel(ctx)
		go func() {
			defer end()
			select {
			case <-again:
			case <-watching.Done():
			}
		}()
		reflector := cache.NewReflectorWithOptions(lw, kind, seen, cache.ReflectorOptions{Backoff: &backoff})
		reflector.RunWithContext(watching)
		end()
	}
}
