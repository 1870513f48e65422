package loss_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/cache"

	"github.com/jobferry/jobferry/e2e/worker/workertest"
)

// places sees the Pods of a test in several workers, and whether those of one Job are ever in two
// at once.
type places struct {
	// stillRuns asks a worker itself: the news of an end may come later than those of another
	// worker's start.
	stillRuns func(worker, job string) bool

	mu   sync.Mutex
	pods map[string]map[string]map[string]bool // job, worker, Pod
	both []string
}

func (s *scene) watchBothPlaces(workers ...string) *places {
	s.t.Helper()
	p := &places{pods: map[string]map[string]map[string]bool{}, stillRuns: s.podsRun}
	for _, worker := range workers {
		saw := func(o any) {
			if pod, ok := o.(*corev1.Pod); ok {
				p.saw(worker, pod.Labels[batchv1.JobNameLabel], pod.Name, !workertest.Ended(*pod))
			}
		}
		_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
			ListerWatcher: cache.NewListWatchFromClient(s.Cluster(worker).Client().CoreV1().RESTClient(), "pods", s.NS, fields.Everything()),
			ObjectType:    &corev1.Pod{},
			Handler: cache.ResourceEventHandlerFuncs{
				AddFunc: saw, UpdateFunc: func(_, o any) { saw(o) },
				DeleteFunc: func(o any) {
					if pod, ok := o.(*corev1.Pod); ok {
						p.saw(worker, pod.Labels[batchv1.JobNameLabel], pod.Name, false)
					}
				},
			},
		})
		go informer.RunWithContext(s.Context())
	}
	return p
}

// podsRun asks a worker whether Pods of a Job run.
func (s *scene) podsRun(worker, job string) bool {
	pods, err := s.Cluster(worker).Client().CoreV1().Pods(s.NS).List(s.Context(), metav1.ListOptions{LabelSelector: batchv1.JobNameLabel + "=" + job})
	return err == nil && slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool { return !workertest.Ended(p) })
}

func (p *places) saw(worker, job, pod string, runs bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pods[job] == nil {
		p.pods[job] = map[string]map[string]bool{}
	}
	if p.pods[job][worker] == nil {
		p.pods[job][worker] = map[string]bool{}
	}
	if !runs {
		delete(p.pods[job][worker], pod)
		return
	}
	p.pods[job][worker][pod] = true
	for other, pods := range p.pods[job] {
		if other != worker && len(pods) > 0 && p.stillRuns(other, job) {
			p.both = append(p.both, fmt.Sprintf("%s: Pods in %s while %s runs in %s", job, other, pod, worker))
		}
	}
}

func (p *places) expectNone(t *testing.T) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, text := range p.both {
		t.Error(text)
	}
}
