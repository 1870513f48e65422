package spanning_test

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// pods are all that ever were in some workers, as they were last.
type pods struct {
	mu  sync.Mutex
	all map[types.UID]podIn
}

type podIn struct {
	*corev1.Pod
	worker string
	gone   bool
}

func (s *story) watchPods(workers ...string) *pods {
	p := &pods{all: map[types.UID]podIn{}}
	for _, worker := range workers {
		saw := func(o any) { p.saw(podIn{Pod: o.(*corev1.Pod), worker: worker}) }
		s.watch(s.Cluster(worker).Client().CoreV1().RESTClient(), "pods", &corev1.Pod{}, cache.ResourceEventHandlerFuncs{
			AddFunc: saw, UpdateFunc: func(_, o any) { saw(o) },
			DeleteFunc: func(o any) {
				if unknown, is := o.(cache.DeletedFinalStateUnknown); is {
					o = unknown.Obj
				}
				p.saw(podIn{Pod: o.(*corev1.Pod), worker: worker, gone: true})
			},
		})
	}
	return p
}

func (s *story) watch(client rest.Interface, resource string, kind runtime.Object, handler cache.ResourceEventHandler) {
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(client, resource, s.NS, fields.Everything()), ObjectType: kind, Handler: handler,
	})
	go informer.RunWithContext(s.Context())
}

func (p *pods) saw(pod podIn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all[pod.UID] = pod
}

// list returns the Pods for which the condition holds.
func (p *pods) list(is func(podIn) bool) []podIn {
	p.mu.Lock()
	defer p.mu.Unlock()
	var found []podIn
	for _, pod := range p.all {
		if is(pod) {
			found = append(found, pod)
		}
	}
	return found
}

func everyPod(podIn) bool { return true }

func (p podIn) succeeded() bool { return p.Status.Phase == corev1.PodSucceeded }
func (p podIn) failed() bool    { return p.Status.Phase == corev1.PodFailed }

func (p podIn) ended() bool { return p.succeeded() || p.failed() }

func (p podIn) isRunning() bool {
	return p.Status.Phase == corev1.PodRunning && !p.gone && p.DeletionTimestamp == nil
}

// index is the completion index of a Pod; -1: it has none.
func (p podIn) index() int {
	index, err := strconv.Atoi(p.Annotations[batchv1.JobCompletionIndexAnnotation])
	if err != nil {
		return -1
	}
	return index
}

// expectOnce checks that every index below n has succeeded in exactly one Pod, which is all that
// there ever was of it.
func (p *pods) expectOnce(t *testing.T, n int) {
	t.Helper()
	for index := range n {
		of := p.list(func(pod podIn) bool { return pod.index() == index })
		if len(of) != 1 || !of[0].succeeded() {
			t.Errorf("index %d has %d Pods: %+v", index, len(of), describe(of))
			continue
		}
		of[0].expectIdentity(t, index)
	}
	if strange := p.list(func(pod podIn) bool { return pod.index() < 0 || pod.index() >= n }); len(strange) > 0 {
		t.Errorf("Pods of no index: %v", describe(strange))
	}
}

// expectCompleted checks that every index below n has succeeded in a Pod, and how often at most,
// whatever other Pods there were.
func (p *pods) expectCompleted(t *testing.T, n, most int) {
	t.Helper()
	for index := range n {
		of := p.list(func(pod podIn) bool { return pod.index() == index && pod.succeeded() })
		if len(of) == 0 || len(of) > most {
			t.Errorf("index %d has completed %d times: %v", index, len(of), describe(of))
		}
	}
}

// expectIdentity checks what a program in a Pod sees of its index.
func (p podIn) expectIdentity(t *testing.T, index int) {
	t.Helper()
	name := fmt.Sprintf("job-%d", index)
	env := p.Spec.Containers[0].Env
	fromAnnotation := slices.ContainsFunc(env, func(e corev1.EnvVar) bool {
		from := fmt.Sprintf("metadata.labels['%s']", batchv1.JobCompletionIndexAnnotation)
		return e.Name == "JOB_COMPLETION_INDEX" && e.ValueFrom != nil && e.ValueFrom.FieldRef != nil && e.ValueFrom.FieldRef.FieldPath == from
	})
	if p.Spec.Hostname != name || p.GenerateName != name+"-" || p.Labels[batchv1.JobCompletionIndexAnnotation] != strconv.Itoa(index) || !fromAnnotation {
		t.Errorf("Pod %s of index %d: generateName %q, hostname %q, labels %v, env %v", p.Name, index, p.GenerateName, p.Spec.Hostname, p.Labels, env)
	}
}

func describe(all []podIn) []string {
	texts := make([]string, 0, len(all))
	for _, p := range all {
		texts = append(texts, fmt.Sprintf("%s/%s %s", p.worker, p.Name, p.Status.Phase))
	}
	slices.Sort(texts)
	return texts
}
