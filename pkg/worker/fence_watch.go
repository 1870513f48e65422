package worker

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/util/wake"
)

// watch observes the Leases with the label of an origin. Those of other programs change every few
// seconds.
func (f *fencer) watch(ctx context.Context) {
	narrow := func(o metav1.ListOptions) metav1.ListOptions {
		o.LabelSelector = v1alpha1.LabelOrigin
		return o
	}
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				return f.leases.List(ctx, narrow(o))
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				return f.leases.Watch(ctx, narrow(o))
			},
		},
		ObjectType: &coordinationv1.Lease{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { f.handle(o, f.observe) },
			UpdateFunc: func(_, o any) { f.handle(o, f.observe) },
			DeleteFunc: func(o any) { f.handle(o, f.observeDeleted) },
		},
	})
	informer.RunWithContext(ctx)
}

func (f *fencer) handle(object any, do func(*coordinationv1.Lease)) {
	if tombstone, gone := object.(cache.DeletedFinalStateUnknown); gone {
		object = tombstone.Obj
	}
	if lease, ok := object.(*coordinationv1.Lease); ok {
		do(lease)
		wake.Signal(f.changed)
	}
}

// fenceMetrics are the metrics that the built-in controller doesn't have.
type fenceMetrics struct{ marked *prometheus.CounterVec }

var (
	closedDesc = prometheus.NewDesc("jobferry_fence_closed",
		"1 while the Jobs of a hub are stopped because it doesn't renew its Lease.", []string{"origin"}, nil)
	lateDesc = prometheus.NewDesc("jobferry_fence_late",
		"1 while the hub moves Jobs before the fence closes: they may run twice.", []string{"origin"}, nil)
)

func newFenceMetrics(registry prometheus.Registerer) (*fenceMetrics, error) {
	b := metricsBuilder{registry: registry, prefix: "jobferry_"}
	m := &fenceMetrics{marked: b.counter("fenced_jobs_total", "The number of Jobs stopped by the fence.", "origin")}
	return m, b.err
}

// fenceCollector reads the state of the fences at each scrape. An origin whose Lease was never
// observed is in no label: any user that may create Jobs can make one up.
type fenceCollector struct{ *fencer }

// Describe implements prometheus.Collector.
func (c fenceCollector) Describe(out chan<- *prometheus.Desc) {
	out <- closedDesc
	out <- lateDesc
}

// Collect implements prometheus.Collector.
func (c fenceCollector) Collect(out chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	late := c.tracker.Late()
	for _, origin := range c.tracker.Origins() {
		if !c.tracker.Observed(origin) {
			continue
		}
		for desc, on := range map[*prometheus.Desc]bool{closedDesc: c.tracker.Closed(origin), lateDesc: late[origin] != nil} {
			value := 0.0
			if on {
				value = 1
			}
			out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, string(origin))
		}
	}
}
