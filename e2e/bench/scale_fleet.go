package bench

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/manager/clusters/clustertest"
)

const (
	// simulatedToken is accepted by all simulated workers.
	simulatedToken = "scale"
	// simulatedNodes is the number of nodes that the room of a worker is on.
	simulatedNodes = 5
	// labelEnds on a Job has it end after a second; others run for ever.
	labelEnds = "bench-ends"
)

// addWorker makes a simulated worker, which runs its Jobs until the context ends.
func (s *scale) addWorker(ctx context.Context, n int) error {
	name := fmt.Sprintf("worker-%03d", n+1)
	c := s.server.Add(name, types.UID("cluster-"+name), simulatedToken)
	running := clustertest.Running{For: runsFor, Started: func(job *batchv1.Job) { s.seen.add(job.Name, name) }}
	for i := range simulatedNodes {
		node := simulatedNode(nodeName(i), divideUp(s.options.room(), simulatedNodes))
		c.Put("nodes", node)
		running.Nodes = append(running.Nodes, node.Name)
	}
	c.Put("namespaces", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: scaleNamespace}})
	s.workers = append(s.workers, c)
	s.tasks.Go(func() { c.RunJobs(ctx, running) })
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: managerNamespace, Name: name, Labels: map[string]string{"jobferry.dev/worker-cluster": "true"},
		},
		Data: map[string][]byte{"kubeconfig": c.Kubeconfig(simulatedToken)},
	}
	_, err := s.hub.client.CoreV1().Secrets(managerNamespace).Create(ctx, secret, metav1.CreateOptions{})
	return err
}

func nodeName(i int) string { return fmt.Sprintf("node-%d", i) }

func runsFor(job *batchv1.Job) time.Duration {
	if job.Labels[labelEnds] != "" {
		return time.Second
	}
	return 0
}

// simulatedNode has room for so many Pods of the bench's Jobs.
func simulatedNode(name string, pods int) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
	}}}
	node.Status.Allocatable = corev1.ResourceList{
		corev1.ResourceCPU: *resource.NewMilliQuantity(int64(pods)*100, resource.DecimalSI), corev1.ResourceMemory: resource.MustParse("4Ti"),
		corev1.ResourcePods: *resource.NewQuantity(int64(pods), resource.DecimalSI),
	}
	node.Status.Capacity = node.Status.Allocatable
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return node
}

// sightings are where and when Jobs started last.
type sightings struct {
	mu      sync.Mutex
	of      map[string]sighting
	changed chan struct{}
}

type sighting struct {
	worker string
	at     time.Time
}

func newSightings() *sightings {
	return &sightings{of: map[string]sighting{}, changed: make(chan struct{})}
}

func (s *sightings) add(job, worker string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of[job] = sighting{worker, time.Now()}
	close(s.changed)
	s.changed = make(chan struct{})
}

// await returns the sightings of some Jobs when all have been seen.
func (s *sightings) await(ctx context.Context, jobs ...string) ([]sighting, error) {
	for {
		s.mu.Lock()
		var seen []sighting
		for _, job := range jobs {
			if is, known := s.of[job]; known {
				seen = append(seen, is)
			}
		}
		changed := s.changed
		s.mu.Unlock()
		if len(seen) == len(jobs) {
			return seen, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("%d of %d Jobs have started: %w", len(seen), len(jobs), context.Cause(ctx))
		}
	}
}

// workers are those that Jobs of a prefix have started in.
func (s *sightings) workers(prefix string) map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	in := map[string]bool{}
	for job, is := range s.of {
		if strings.HasPrefix(job, prefix) {
			in[is.worker] = true
		}
	}
	return in
}

// placed is the worker of the copy with a number.
func (s *scale) placed(n int) *clustertest.Cluster { return s.workers[n%len(s.workers)] }

// pattern is a Job that the manager has dispatched, from which others are copied.
type pattern struct {
	worker string
	hub    *batchv1.Job
	mirror *batchv1.Job
	pod    *corev1.Pod // nil: it has finished
}

// copyName is that of a copy, and liveName that of one of the Jobs that run all along.
func copyName(prefix string, n int) string { return fmt.Sprintf("%s-%06d", prefix, n) }
func liveName(n int) string                { return copyName(livePrefix, n) }

const livePrefix = "live"

// copyOf is the pattern with another name, on another worker, with its Pod on a node.
func (p *pattern) copyOf(prefix string, n int, worker, node string) *pattern {
	name := copyName(prefix, n)
	c := &pattern{worker: worker, hub: p.hub.DeepCopy(), mirror: p.mirror.DeepCopy(), pod: p.pod.DeepCopy()}
	uid := func(of string) types.UID {
		return types.UID(fmt.Sprintf("%s-%x-4000-8000-%012d", of, prefix[:2], n))
	}
	c.hub.Name, c.hub.UID, c.hub.ResourceVersion = name, uid("11111111"), ""
	c.mirror.Name, c.mirror.UID = name, uid("22222222")
	replace := func(in map[string]string, before, after string) {
		for key, value := range in {
			in[key] = strings.ReplaceAll(value, before, after)
		}
	}
	for i := range c.hub.Status.Conditions {
		kept := strings.NewReplacer(p.worker, worker, string(p.mirror.UID), string(c.mirror.UID)) // in the account
		c.hub.Status.Conditions[i].Message = kept.Replace(c.hub.Status.Conditions[i].Message)
	}
	replace(c.mirror.Annotations, string(p.hub.UID), string(c.hub.UID))
	for _, in := range []map[string]string{c.hub.Spec.Selector.MatchLabels, c.hub.Spec.Template.Labels, c.mirror.Spec.Template.Labels} {
		replace(in, string(p.hub.UID), string(c.hub.UID))
		replace(in, p.hub.Name, name)
	}
	if c.pod != nil {
		c.pod.Name, c.pod.UID, c.pod.Spec.NodeName = name+"-00000", uid("33333333"), node
		replace(c.pod.Labels, string(p.mirror.UID), string(c.mirror.UID))
		replace(c.pod.Labels, p.mirror.Name, name)
		c.pod.OwnerReferences[0].Name, c.pod.OwnerReferences[0].UID = name, c.mirror.UID
	}
	return c
}

// dispatchPattern has the manager dispatch a Job, and returns it when the hub shows what the worker
// says.
func (s *scale) dispatchPattern(ctx context.Context, name string, until func(*batchv1.Job) bool, options ...option) (*pattern, error) {
	if _, err := s.hub.create(ctx, 1, scaleNamespace, []string{name}, append(options, dispatched)...); err != nil {
		return nil, err
	}
	hub, err := s.awaitJob(ctx, name, until)
	if err != nil {
		return nil, err
	}
	p := &pattern{worker: hubstate.Get(hub, hubstate.Cluster), hub: hub}
	for _, c := range s.workers {
		if mirror, is := c.Get("jobs", scaleNamespace, name).(*batchv1.Job); is {
			p.mirror = mirror
			p.pod, _ = c.Get("pods", scaleNamespace, name+"-00000").(*corev1.Pod) // a finished one has none
		}
	}
	if p.mirror == nil {
		return nil, fmt.Errorf("no worker has a mirror of %s", name)
	}
	return p, nil
}

// awaitJob returns a Job of the hub when a condition holds.
func (s *scale) awaitJob(ctx context.Context, name string, until func(*batchv1.Job) bool) (*batchv1.Job, error) {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		job, err := s.hub.client.BatchV1().Jobs(scaleNamespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil || until(job) {
			return job, err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("job %s: %w", name, context.Cause(ctx))
		}
	}
}
