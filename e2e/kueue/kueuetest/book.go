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

// Book follows all Workloads of a test's namespace, and adds up whose quota is whose. After each
// change it holds the sum of a cohort against what its queues have together.
type Book struct {
	quota int64 // millis of CPU of the cohort

	mu       sync.Mutex
	held     map[string]int64 // by Workload
	queue    map[string]string
	most     map[string]int64 // by ClusterQueue: the most it ever held
	total    int64            // the most that the cohort ever held
	breaches []string
	changed  chan struct{} // has room for one
}

// Follow keeps the book until the test ends. The quota is the cohort's, in whole CPUs.
func (f *Fixture) Follow(quota int64) *Book {
	f.t.Helper()
	b := &Book{quota: quota * 1000, held: map[string]int64{}, queue: map[string]string{}, most: map[string]int64{}, changed: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(f.Context())
	lw := cache.NewListWatchFromClient(f.API(), "workloads", f.NS, fields.Everything())
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: lw, ObjectType: &kueue.Workload{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { b.note(o.(runtime.Object)) },
			UpdateFunc: func(_, o any) { b.note(o.(runtime.Object)) },
			DeleteFunc: b.gone,
		},
	})
	var running sync.WaitGroup
	running.Go(func() { informer.RunWithContext(ctx) })
	f.t.Cleanup(func() { cancel(); running.Wait() })
	return b
}

// note takes over a Workload as it is now. A preempted one holds its quota until its Pods are gone,
// as Kueue counts.
func (b *Book) note(object runtime.Object) {
	w := object.(*kueue.Workload)
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.held, w.Name)
	if w.Status.Admission != nil && HasQuota(w) && !Finished(w) {
		b.held[w.Name], b.queue[w.Name] = usage(w), string(w.Status.Admission.ClusterQueue)
	}
	b.audit(w.Name)
	b.tell()
}

func (b *Book) tell() {
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

func (b *Book) gone(object any) {
	if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = last.Obj
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.held, object.(*kueue.Workload).Name)
	b.tell()
}

// usage is what a Workload takes of its quota, less what Kueue has reclaimed of it.
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

func (b *Book) audit(cause string) {
	sum, by := int64(0), map[string]int64{}
	for name, cpu := range b.held {
		sum += cpu
		by[b.queue[name]] += cpu
	}
	for queue, cpu := range by {
		b.most[queue] = max(b.most[queue], cpu)
	}
	b.total = max(b.total, sum)
	if sum > b.quota {
		b.breaches = append(b.breaches, fmt.Sprintf("%d of %d millis after %s", sum, b.quota, cause))
	}
}

// Check waits until nobody holds quota any more, and reports every moment in which the cohort had
// more than its own.
func (b *Book) Check(f *Fixture) {
	f.t.Helper()
	for b.holders() != "" {
		select {
		case <-b.changed:
		case <-f.Context().Done():
			f.t.Fatalf("quota is still held by %s", b.holders())
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.breaches) > 0 {
		f.t.Errorf("the cohort's quota was exceeded %d times, first: %s", len(b.breaches), b.breaches[0])
	}
}

func (b *Book) holders() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Join(slices.Sorted(maps.Keys(b.held)), ", ")
}

// Most is the most that a ClusterQueue ever held, in whole CPUs.
func (b *Book) Most(queue string) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.most[queue] / 1000
}
