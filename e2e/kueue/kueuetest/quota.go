package kueuetest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// QuotaTracker watches all Workloads of a test's namespace, and adds up their quota. After each
// change it compares the sum of the cohort with its quota.
type QuotaTracker struct {
	quota int64 // millis of CPU of the cohort

	mu       sync.Mutex
	held     map[string]int64 // by Workload
	queue    map[string]string
	most     map[string]int64 // by ClusterQueue: the most it ever held
	total    int64            // the most that the cohort ever held
	breaches []string
	changed  chan struct{} // buffers one
}

// TrackQuota tracks the quota until the test ends. The quota is the cohort's, in whole CPUs.
func (f *Fixture) TrackQuota(quota int64) *QuotaTracker {
	f.t.Helper()
	q := &QuotaTracker{quota: quota * 1000, held: map[string]int64{}, queue: map[string]string{}, most: map[string]int64{}, changed: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(f.Context())
	lw := cache.NewListWatchFromClient(f.API(), "workloads", f.NS, fields.Everything())
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: lw, ObjectType: &kueue.Workload{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { q.observe(o.(runtime.Object)) },
			UpdateFunc: func(_, o any) { q.observe(o.(runtime.Object)) },
			DeleteFunc: q.deleted,
		},
	})
	var running sync.WaitGroup
	running.Go(func() { informer.RunWithContext(ctx) })
	f.t.Cleanup(func() { cancel(); running.Wait() })
	return q
}

// observe records the state of a Workload. A preempted one holds its quota until its Pods are gone,
// as Kueue counts.
func (q *QuotaTracker) observe(object runtime.Object) {
	w := object.(*kueue.Workload)
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.held, w.Name)
	if w.Status.Admission != nil && HasQuota(w) && !Finished(w) {
		q.held[w.Name], q.queue[w.Name] = usage(w), string(w.Status.Admission.ClusterQueue)
	}
	q.audit(w.Name)
	q.notify()
}

func (q *QuotaTracker) notify() {
	select {
	case q.changed <- struct{}{}:
	default:
	}
}

func (q *QuotaTracker) deleted(object any) {
	if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = last.Obj
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.held, object.(*kueue.Workload).Name)
	q.notify()
}

// usage is the quota of a Workload, less what Kueue has reclaimed.
func usage(w *kueue.Workload) int64 {
	total := int64(0)
	for _, pods := range w.Status.Admission.PodSetAssignments {
		cpu, count := pods.ResourceUsage[corev1.ResourceCPU], int64(1)
		if pods.Count != nil && *pods.Count > 0 {
			count = int64(*pods.Count)
		}
		left := count
		for _, reclaimed := range w.Status.ReclaimablePods {
			if reclaimed.Name == pods.Name {
				left -= int64(reclaimed.Count)
			}
		}
		total += cpu.MilliValue() * left / count
	}
	return total
}

func (q *QuotaTracker) audit(cause string) {
	sum, by := int64(0), map[string]int64{}
	for name, cpu := range q.held {
		sum += cpu
		by[q.queue[name]] += cpu
	}
	for queue, cpu := range by {
		q.most[queue] = max(q.most[queue], cpu)
	}
	q.total = max(q.total, sum)
	if sum > q.quota {
		q.breaches = append(q.breaches, fmt.Sprintf("%d of %d millis after %s", sum, q.quota, cause))
	}
}

// Check waits until no Workload holds quota, and reports how often the cohort's quota was exceeded.
func (q *QuotaTracker) Check(f *Fixture) {
	f.t.Helper()
	for q.holders() != "" {
		select {
		case <-q.changed:
		case <-f.Context().Done():
			f.t.Fatalf("quota is still held by %s", q.holders())
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.breaches) > 0 {
		f.t.Errorf("the cohort's quota was exceeded %d times, first: %s", len(q.breaches), q.breaches[0])
	}
}

func (q *QuotaTracker) holders() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return strings.Join(slices.Sorted(maps.Keys(q.held)), ", ")
}

// Most is the most quota that a ClusterQueue ever held, in whole CPUs.
func (q *QuotaTracker) Most(queue string) int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.most[queue] / 1000
}
