// Package job is Kubernetes' integration suite for Jobs, with pkg/worker in the place of the
// built-in Job controller. These functions take the place of the suite's own of the same names:
// startJobControllerAndWaitForCaches, createJobControllerWithSharedInformers, resetMetrics and
// validateCounterMetric.
package job

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientfeatures "k8s.io/client-go/features"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/rest"
	basemetrics "k8s.io/component-base/metrics"
	"k8s.io/klog/v2/ktesting"
	jobcontroller "k8s.io/kubernetes/pkg/controller/job"
	jobmetrics "k8s.io/kubernetes/pkg/controller/job/metrics"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/jobferry/jobferry/pkg/worker"
	"github.com/jobferry/jobferry/pkg/worker/plan"
)

// init ends this process and its etcd when the program ends, in whatever way, that started it as a
// group of its own with a pipe for its input.
func init() {
	if syscall.Getpgrp() != os.Getpid() {
		return
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = syscall.Kill(0, syscall.SIGKILL) // the process group
	}()
}

// ownGates are client-go's feature gates as pkg/worker has them in a process of its own. Some tests
// have the API server of this process emulate 1.34, which switches off what client-go has since
// 1.36.
type ownGates struct{ clientfeatures.Gates }

func (g ownGates) Enabled(f clientfeatures.Feature) bool {
	return f == clientfeatures.AtomicFIFO || g.Gates.Enabled(f)
}

var useOwnGates = sync.OnceFunc(func() { clientfeatures.ReplaceFeatureGates(ownGates{clientfeatures.FeatureGates()}) })

// jobController is what the suite does with a Job controller.
type jobController struct{ mgr ctrl.Manager }

// Run runs the controller until the context ends.
func (c jobController) Run(ctx context.Context, _ int) {
	if err := c.mgr.Start(ctx); err != nil {
		panic(fmt.Sprintf("the manager of pkg/worker: %v", err))
	}
}

// startJobControllerAndWaitForCaches starts a controller with informers of its own. The one test
// that has an option for informers delays the events of Jobs by it.
func startJobControllerAndWaitForCaches(tb testing.TB, restConfig *rest.Config, options ...informers.SharedInformerOption) (context.Context, context.CancelFunc) {
	tb.Helper()
	var delay time.Duration
	if len(options) > 0 {
		delay = 2 * fastSyncJobBatchPeriod
	}
	c, ctx, cancel := newController(tb, restConfig, delay)
	go c.Run(ctx, 1)
	if !c.mgr.GetCache().WaitForCacheSync(ctx) {
		tb.Fatal("the caches of pkg/worker didn't sync")
	}
	return ctx, cancel
}

// createJobControllerWithSharedInformers has the factory start the informer of Jobs, as the
// built-in does: tests look into it.
func createJobControllerWithSharedInformers(tb testing.TB, restConfig *rest.Config, shared informers.SharedInformerFactory) (jobController, context.Context, context.CancelFunc) {
	tb.Helper()
	shared.Batch().V1().Jobs().Informer()
	return newController(tb, restConfig, 0)
}

// newController makes a controller with the options that the suite gives to the built-in through
// variables.
func newController(tb testing.TB, restConfig *rest.Config, delay time.Duration) (jobController, context.Context, context.CancelFunc) {
	tb.Helper()
	useOwnGates()
	_, ctx := ktesting.NewTestContext(tb)
	ctx, cancel := context.WithCancel(ctx)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, batchv1.AddToScheme, schedulingv1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			tb.Fatal(err)
		}
	}
	options := worker.Options{
		Concurrency: 1,
		Options: plan.Options{
			PodFailureBackoff: jobcontroller.DefaultJobPodFailureBackOff, MaxPodFailureBackoff: jobcontroller.MaxJobPodFailureBackOff,
			SyncBatchPeriod: jobcontroller.SyncJobBatchPeriod, MaxUncountedPods: jobcontroller.MaxUncountedPods,
			MaxPodCreateDeletePerSync: jobcontroller.MaxPodCreateDeletePerSync,
		},
		FenceAfter: -1,
	}
	options.MaxPodFailureBackoff = max(options.MaxPodFailureBackoff, options.PodFailureBackoff)
	options = options.DropIn()
	mgr, err := ctrl.NewManager(rest.AddUserAgent(restConfig, "job-controller"), ctrl.Options{
		Scheme: scheme, Cache: cacheOptions(options, delay), Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		tb.Fatal(err)
	}
	if err := worker.Setup(mgr, options); err != nil {
		tb.Fatal(err)
	}
	jobmetrics.Register() // so that validateCounterMetric can ask them for their labels
	return jobController{mgr}, ctx, cancel
}

// cacheOptions are those of pkg/worker. With a delay, Jobs come into the cache that much later.
func cacheOptions(of worker.Options, delay time.Duration) cache.Options {
	options := worker.CacheOptions([]worker.Options{of})
	if delay > 0 {
		options.ByObject[&batchv1.Job{}] = cache.ByObject{Transform: func(obj any) (any, error) {
			time.Sleep(delay)
			return obj, nil
		}}
	}
	return options
}

// counted is what the counters were at the last resetMetrics. Those of pkg/worker can't be reset.
var counted struct {
	sync.Mutex
	before map[string]float64
}

func resetMetrics() {
	counted.Lock()
	defer counted.Unlock()
	counted.before = counters()
}

// validateCounterMetric waits until the counter that has the name and the labels of the built-in's
// has the value.
func validateCounterMetric(ctx context.Context, t *testing.T, counterVec *basemetrics.CounterVec, want metricLabelsWithValue) {
	t.Helper()
	builtIn, ok := counterVec.WithLabelValues(want.Labels...).(interface{ Write(*dto.Metric) error })
	if !ok {
		t.Fatalf("%s: the built-in's metric doesn't tell its labels", counterVec.FQName())
	}
	var labels dto.Metric
	if err := builtIn.Write(&labels); err != nil {
		t.Fatal(err)
	}
	key := counterKey(counterVec.FQName(), &labels)
	counted.Lock()
	before := maps.Clone(counted.before)
	counted.Unlock()
	var got float64
	if err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
		got = counters()[key] - before[key]
		return got == float64(want.Value), nil
	}); err != nil {
		t.Errorf("counter %s: got %v, want %v", key, got, want.Value)
	}
}

// counters are the values of all counters of pkg/worker, by name and labels.
func counters() map[string]float64 {
	families, err := ctrlmetrics.Registry.Gather()
	if err != nil {
		panic(err)
	}
	values := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if m.Counter != nil {
				values[counterKey(family.GetName(), m)] = m.GetCounter().GetValue()
			}
		}
	}
	return values
}

// counterKey orders the labels by name, as both registries do.
func counterKey(name string, m *dto.Metric) string {
	key := name
	for _, l := range m.GetLabel() {
		key += fmt.Sprintf(" %s=%q", l.GetName(), l.GetValue())
	}
	return key
}
