package ferrytest

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/jobferry/jobferry/pkg/manager"
	"github.com/jobferry/jobferry/pkg/manager/packed"
)

// UserAgent is what the audit logs know the manager by, in this process or as one of its own.
const UserAgent = "jobferry-manager"

// Manager is jobferry-manager's controllers in this process.
type Manager struct {
	t       testing.TB
	workers *prometheus.Registry
	stop    func() error
}

// RunManager runs the manager in this process until the test ends or Stop is called. Its delays are
// shorter than the defaults; edits change them further.
func (f *Ferry) RunManager(edits ...func(*manager.Options)) *Manager {
	f.t.Helper()
	m := &Manager{t: f.t, workers: prometheus.NewRegistry()}
	options := manager.DefaultOptions()
	options.Namespace = SystemNamespace
	options.Connection.Metrics = m.workers
	options.Connection.ProbeInterval = time.Second
	options.Connection.MaxBackoff = 2 * time.Second
	for _, edit := range edits {
		edit(&options)
	}
	quiet()
	log := &journal{}
	hub := rest.CopyConfig(f.Hub.RESTConfig())
	hub.UserAgent = UserAgent
	if f.ManagerUser != "" {
		hub.Impersonate = rest.ImpersonationConfig{UserName: f.ManagerUser, Groups: []string{"system:authenticated"}}
	}
	mgr, err := ctrl.NewManager(hub, ctrl.Options{
		Scheme:   manager.NewScheme(),
		NewCache: packed.NewCache,
		Cache:    manager.CacheOptions(options),
		Metrics:  metricsserver.Options{BindAddress: "0"},
		// several in one process, one after the other
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
		Logger:     log.logger(),
	})
	if err != nil {
		f.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background()) // the test's own ends before its cleanups
	_, flush, err := manager.Setup(ctx, mgr, options)
	if err != nil {
		cancel()
		f.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		err := mgr.Start(ctx)
		flush()
		ended <- err
	}()
	m.stop = sync.OnceValue(func() error { cancel(); return <-ended })
	f.t.Cleanup(func() {
		m.Stop()
		if f.t.Failed() {
			f.t.Log("manager:\n" + log.String())
		}
	})
	return m
}

// quiet drops what is logged by parts that don't have the manager's logger.
var quiet = sync.OnceFunc(func() { ctrl.SetLogger(logr.Discard()) })

// Stop ends the manager, and returns when nothing of it runs any more.
func (m *Manager) Stop() {
	m.t.Helper()
	if err := m.stop(); err != nil {
		m.t.Errorf("manager: %v", err)
	}
}

// Metric returns the sum of a metric's series that have these labels, given as name, value, name,
// value, …; zero if there is none.
func (m *Manager) Metric(name string, labels ...string) float64 {
	m.t.Helper()
	families, err := prometheus.Gatherers{metrics.Registry, m.workers}.Gather()
	if err != nil {
		m.t.Fatal(err)
	}
	sum := 0.0
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, series := range family.GetMetric() {
			if hasLabels(series, labels) {
				sum += series.GetCounter().GetValue() + series.GetGauge().GetValue()
			}
		}
	}
	return sum
}

func hasLabels(series *dto.Metric, labels []string) bool {
	has := map[string]string{}
	for _, pair := range series.GetLabel() {
		has[pair.GetName()] = pair.GetValue()
	}
	for i := 0; i+1 < len(labels); i += 2 {
		if has[labels[i]] != labels[i+1] {
			return false
		}
	}
	return true
}

// journal keeps the log for tests that fail.
type journal struct {
	mu   sync.Mutex
	text strings.Builder
}

func (j *journal) logger() logr.Logger {
	write := func(prefix, args string) {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.text.WriteString(prefix + " " + args + "\n")
	}
	return funcr.New(write, funcr.Options{LogTimestamp: true})
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}
