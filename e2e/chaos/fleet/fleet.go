package fleet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/clock"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// Options choose what the fleet is like.
type Options struct {
	// Dir is an existing folder for programs and kubeconfigs.
	Dir string
	// LostAfter is the managers' worker-lost-timeout.
	LostAfter time.Duration
	// FenceAfter is how long after the expiry of the hub's Lease a fenced worker stops its Jobs.
	// Default: a third of LostAfter.
	FenceAfter time.Duration
	// Ended is called when a process ended by itself and is started again.
	Ended func(cluster, process string)
}

// Fleet is what runs.
type Fleet struct {
	Hub      *rig.Cluster
	Workers  []*Worker
	Managers []*Manager
	// API is a client of the hub that knows WorkerClusters, too.
	API client.Client

	options Options
	built   programs
	keeper  *keeper
	// writing is held for reading by a user who writes, and by an admin who wants none to.
	writing sync.RWMutex
}

// Worker is a worker cluster.
type Worker struct {
	*rig.Cluster
	// Embedded: jobferry-worker runs its Jobs, and fences them.
	Embedded bool
	// Clock is the offset of its clock from the machine's when no fault changes it.
	Clock time.Duration
	// JobController is the process that runs its Jobs.
	JobController *rig.Component

	rotations int
}

// shapes are the workers that there are.
var shapes = []struct {
	name     string
	embedded bool
	clock    time.Duration
}{
	{"w1", true, 0},
	{"w2", true, -15 * time.Minute},
	{"w3", false, 20 * time.Minute},
}

// WorkerNames and ManagerNames are those of every fleet.
func WorkerNames() []string {
	var names []string
	for _, s := range shapes {
		names = append(names, s.name)
	}
	return names
}

// ManagerNames are those of every fleet.
func ManagerNames() []string { return []string{"manager-1", "manager-2"} }

// Start builds the programs, starts all, and returns when all workers are ready. It runs until Stop
// or the end of this process.
func Start(ctx context.Context, o Options) (_ *Fleet, err error) {
	built, err := build(ctx, o.Dir)
	if err != nil {
		return nil, err
	}
	f := &Fleet{options: o, built: built}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Stop())
		}
	}()
	if err := f.startClusters(ctx); err != nil {
		return nil, err
	}
	for _, step := range []func(context.Context, programs) error{f.startWorkers, f.installHub, f.startManagers, f.register} {
		if err := step(ctx, built); err != nil {
			return nil, err
		}
	}
	f.keeper = newKeeper(f.components(), o.Ended)
	return f, f.awaitWorkers(ctx)
}

func (f *Fleet) startClusters(ctx context.Context) error {
	// The hub takes a Node for lost when no manager has renewed its Lease for 25 seconds, and removes
	// Pods that have ended.
	all := []rig.Options{{Name: "hub", Audit: true, ControllerManagerFlags: []string{
		"--controllers=*", "--node-monitor-period=1s", "--node-monitor-grace-period=25s", "--node-startup-grace-period=25s",
		"--terminated-pod-gc-threshold=50",
	}}}
	for _, s := range shapes {
		controller := rig.BuiltIn
		if s.embedded {
			controller = rig.None
		}
		all = append(all, rig.Options{
			Name: s.name, FaultProxy: true, JobController: controller,
			Nodes: []rig.Nodes{{Count: 4, CPU: "512", Memory: "1Ti", Pods: 400}},
		})
	}
	clusters, err := rig.StartAll(ctx, all...)
	if err != nil {
		return err
	}
	f.Hub = clusters[0]
	for i, c := range clusters[1:] {
		f.Workers = append(f.Workers, &Worker{Cluster: c, Embedded: shapes[i].embedded, Clock: shapes[i].clock})
	}
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	f.API, err = client.New(f.Hub.RESTConfig(), client.Options{Scheme: scheme})
	return err
}

// Worker returns a worker by its name.
func (f *Fleet) Worker(name string) *Worker {
	for _, w := range f.Workers {
		if w.Name() == name {
			return w
		}
	}
	panic("no worker " + name)
}

// Manager returns a manager by its name.
func (f *Fleet) Manager(name string) *Manager {
	for _, m := range f.Managers {
		if m.Name == name {
			return m
		}
	}
	panic("no manager " + name)
}

// SetClock sets a worker's clock apart from its usual one.
func (w *Worker) SetClock(offset time.Duration) error {
	if !clock.Supported {
		return nil
	}
	var errs []error
	for _, c := range w.Components() {
		errs = append(errs, c.SetClock(w.Clock+offset))
	}
	return errors.Join(errs...)
}

// Stop ends all processes.
func (f *Fleet) Stop() error {
	if f.keeper != nil {
		f.keeper.stop()
	}
	for _, m := range f.Managers {
		m.Link.Close()
	}
	var clusters []*rig.Cluster
	for _, w := range f.Workers {
		clusters = append(clusters, w.Cluster)
	}
	if err := rig.StopAll(append(clusters, f.Hub)...); err != nil {
		return fmt.Errorf("stop the fleet: %w", err)
	}
	return nil
}

func (f *Fleet) components() map[*rig.Component]string {
	all := map[*rig.Component]string{}
	for _, c := range f.Hub.Components() {
		all[c] = f.Hub.Name()
	}
	for _, w := range f.Workers {
		for _, c := range w.Components() {
			all[c] = w.Name()
		}
	}
	return all
}

// IsFenced says whether a worker of every fleet has a fence.
func IsFenced(worker string) bool {
	for _, s := range shapes {
		if s.name == worker {
			return s.embedded
		}
	}
	return false
}
