package upgrade_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/jobferry/jobferry/e2e/chaos/checker"
	"github.com/jobferry/jobferry/e2e/chaos/story"
	"github.com/jobferry/jobferry/e2e/chaos/watch"
	"github.com/jobferry/jobferry/e2e/rig"
)

// podIn is a Pod of a worker as it was seen last.
type podIn struct {
	*corev1.Pod
	worker string
	gone   bool
}

func (p podIn) job() string { return p.Labels[batchv1.JobNameLabel] }

func (p podIn) runs() bool {
	return !p.gone && p.DeletionTimestamp == nil && p.Status.Phase == corev1.PodRunning
}

// witness watches the Jobs and Pods of a namespace in all clusters, and judges what it sees.
type witness struct {
	t         *testing.T
	namespace string
	began     time.Time
	clients   map[string]kubernetes.Interface
	asking    sync.WaitGroup

	mu      sync.Mutex
	checker *checker.Checker
	pods    map[types.UID]podIn
	// excused are the Pods that may be stopped: their Job's user suspended or deleted it.
	excused map[types.UID]bool
	// stopped are the Pods that were asked to stop, and nobody wanted that.
	stopped map[types.UID]string
}

// watchAll begins to watch. It ends with the test.
func watchAll(t *testing.T, namespace string, jobs []*job, clusters ...*rig.Cluster) *witness {
	t.Helper()
	w := &witness{
		t: t, namespace: namespace, began: time.Now(), clients: map[string]kubernetes.Interface{},
		pods: map[types.UID]podIn{}, excused: map[types.UID]bool{}, stopped: map[types.UID]string{},
	}
	var stories []story.Story
	for _, j := range jobs {
		stories = append(stories, j.Story)
	}
	w.checker = checker.New(checker.Options{Workers: []checker.Worker{{Name: builtIn}, {Name: embedded, Fenced: true}}}, stories)
	ctx, cancel := context.WithCancel(context.Background())
	var watches sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		watches.Wait()
		w.asking.Wait()
	})
	for _, c := range clusters {
		client, err := watch.Client(c.RESTConfig())
		if err != nil {
			t.Fatal(err)
		}
		w.clients[c.Name()] = client
		watches.Go(func() { watch.Jobs(ctx, c.Name(), client, namespace, w.observe, nil) })
		watches.Go(func() { watch.Pods(ctx, c.Name(), client, namespace, w.observe, nil) })
	}
	return w
}

func (w *witness) observe(e checker.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e.At = time.Since(w.began)
	if e.Pod != nil {
		w.observePod(podIn{e.Pod, e.Where, e.Gone})
	}
	for _, q := range w.checker.Observe(e) {
		w.asking.Go(func() { w.ask(q) })
	}
}

// observePod notes a Pod that is asked to stop before it has ended.
func (w *witness) observePod(p podIn) {
	w.pods[p.UID] = p
	ended := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	if (p.gone || p.DeletionTimestamp != nil) && !ended && !w.excused[p.UID] {
		w.stopped[p.UID] = fmt.Sprintf("%s of %s", p.Name, p.worker)
	}
}

// ask settles a suspicion of the checker.
func (w *witness) ask(q checker.Question) {
	answer := checker.AllRun
	for _, p := range q.Pods {
		pod, err := w.clients[p.Where].CoreV1().Pods(w.namespace).Get(context.Background(), p.Name, metav1.GetOptions{})
		if err != nil || pod.UID != p.UID || pod.Status.Phase != corev1.PodRunning {
			answer = checker.SomeEnded
		}
	}
	w.do(func(c *checker.Checker, at time.Duration) { c.Answer(at, q, answer) })
}

func (w *witness) do(what func(c *checker.Checker, at time.Duration)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	what(w.checker, time.Since(w.began))
}

// acts is called before the user does something to a Job.
func (w *witness) acts(name string, deed story.Deed) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for uid, p := range w.pods {
		if p.job() == name && (deed == story.Suspend || deed == story.Delete) {
			w.excused[uid] = true
		}
	}
	w.checker.Acted(time.Since(w.began), name, deed)
}

// list returns the Pods of a Job of which something holds, by name.
func (w *witness) list(job string, holds func(podIn) bool) []podIn {
	w.mu.Lock()
	defer w.mu.Unlock()
	var found []podIn
	for _, p := range w.pods {
		if p.job() == job && holds(p) {
			found = append(found, p)
		}
	}
	slices.SortFunc(found, func(a, b podIn) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return found
}

// expectNothing fails the test for all that went wrong.
func (w *witness) expectNothing() {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, v := range w.checker.Violations() {
		w.t.Errorf("%s", v)
		for _, line := range w.checker.Lines(v.Job) {
			w.t.Log(line)
		}
	}
	if f := w.checker.Figures(); f != (checker.Figures{}) {
		w.t.Errorf("Jobs moved, or ran something twice: %+v", f)
	}
	for _, p := range w.stopped {
		w.t.Errorf("Pod %s was stopped, and nobody wanted that", p)
	}
}
