package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/jobferry/jobferry/e2e/rig/binaries"
	"github.com/jobferry/jobferry/e2e/rig/reap"
)

// startTimeout is how long a cluster may take to be ready once its programs are built. Ready is
// what it is after some seconds; the rest is for machines that are busy with something else.
const startTimeout = 5 * time.Minute

// LogsVariable names the environment variable with a folder that components' logs are written to,
// one subfolder for each cluster, and that is kept. Without it logs are gone with the cluster.
const LogsVariable = "JOBFERRY_RIG_LOGS"

// Cluster is a running cluster. Its methods may be called by several goroutines.
type Cluster struct {
	options  Options
	programs binaries.Paths
	dir      string
	logs     string
	reaper   *reap.Reaper

	etcdPort, peerPort, apiPort, proxyPort *port
	addedPorts                             []*port

	credentials           *credentials
	admin, proxied        []byte
	adminFile             string
	controllerManagerFile string
	schedulerFile         string
	kwokKubeconfig        string
	kwokFile              string
	auditPolicyFile       string
	auditLog              string

	rest       *rest.Config
	client     kubernetes.Interface
	components []*Component
	proxy      *Proxy

	// restored is sent to when etcd's data was put back: a watch that continues says nothing then.
	restored chan struct{}

	background context.Context
	cancel     context.CancelFunc
	tasks      sync.WaitGroup
	stop       sync.Once
	stopErr    error
}

// Start starts a cluster and returns when it is ready: its API server serves, its Nodes are ready,
// its default namespace has a ServiceAccount. If the programs are not in the cache, it builds them
// first, which takes minutes.
//
// The cluster runs until Stop is called or this process ends, in whatever way; ctx is for the start
// alone.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	options, err := options.complete()
	if err != nil {
		return nil, err
	}
	programs, err := binaries.Ensure(ctx, options.Release, options.report())
	if err != nil {
		return nil, err
	}
	c := &Cluster{options: options, programs: programs, restored: make(chan struct{}, 1)}
	c.background, c.cancel = context.WithCancel(context.Background())
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start cluster %s: %w", options.Name, err), c.Stop())
	}
	return c, nil
}

// StartAll starts several clusters at once. If one fails, all are stopped.
func StartAll(ctx context.Context, options ...Options) ([]*Cluster, error) {
	clusters, errs := make([]*Cluster, len(options)), make([]error, len(options))
	var group sync.WaitGroup
	for i, o := range options {
		group.Go(func() { clusters[i], errs[i] = Start(ctx, o) })
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(err, StopAll(clusters...))
	}
	return clusters, nil
}

// StopAll stops clusters; nil ones are passed over.
func StopAll(clusters ...*Cluster) error {
	var errs []error
	for _, c := range clusters {
		if c != nil {
			errs = append(errs, c.Stop())
		}
	}
	return errors.Join(errs...)
}

func (c *Cluster) start(ctx context.Context) error {
	for _, step := range []func() error{
		c.makeFolder, c.makePorts, c.makeCredentials, c.makeKubeconfigs, c.makeFiles, c.makeProxy,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	if err := c.launch(c.program(binaries.Etcd, c.etcdFlags()), c.program(binaries.APIServer, c.apiServerFlags())); err != nil {
		return err
	}
	if err := c.Ready(ctx); err != nil {
		return err
	}
	others := []*Component{c.program(binaries.ControllerManager, c.controllerManagerFlags())}
	if c.simulates() || c.options.Kubelets {
		others = append(others, c.program(binaries.Scheduler, c.schedulerFlags()))
	}
	if c.simulates() {
		others = append(others, c.program(binaries.Kwok, c.kwokFlags()))
	}
	if err := c.launch(others...); err != nil {
		return err
	}
	if c.simulates() {
		c.tasks.Go(func() { numberAttempts(c.background, c.client, c.restored) })
	}
	return c.populate(ctx)
}

// simulates says whether the cluster has simulated Nodes.
func (c *Cluster) simulates() bool { return len(c.options.Nodes) > 0 }

// program makes a component, which is not running yet.
func (c *Cluster) program(name string, flags []string) *Component {
	return &Component{
		Name: name, program: c.programs[name], args: flags, dir: c.dir,
		logFile: filepath.Join(c.logs, name+".log"),
	}
}

// AddProgram makes a component of a program that isn't part of Kubernetes, such as a controller. It
// isn't running yet; it ends with the cluster. It's to be called before others use the cluster.
func (c *Cluster) AddProgram(name, program string, args ...string) *Component {
	component := c.program(name, args)
	component.program = program
	c.components = append(c.components, component)
	return component
}

// ReservePort reserves a free port on loopback for an added program, until the cluster is stopped.
// It's to be called before others use the cluster.
func (c *Cluster) ReservePort() (int, error) {
	p, err := reservePort()
	if err != nil {
		return 0, err
	}
	c.addedPorts = append(c.addedPorts, p)
	return p.Number, nil
}

// AddFolder makes a folder for an added program, which is removed with the cluster.
func (c *Cluster) AddFolder(name string) (string, error) {
	path := filepath.Join(c.dir, name)
	return path, os.Mkdir(path, 0o755)
}

func (c *Cluster) launch(components ...*Component) error {
	for _, component := range components {
		if err := component.Start(); err != nil {
			return err
		}
		c.components = append(c.components, component)
	}
	return nil
}

// Stop ends the cluster's processes and removes its files. It may be called again. It returns an
// error if a component had ended by itself before.
func (c *Cluster) Stop() error {
	c.stop.Do(func() {
		c.cancel()
		var errs []error
		for _, component := range c.components {
			errs = append(errs, component.failure())
		}
		for _, component := range c.components {
			errs = append(errs, component.Kill())
		}
		c.tasks.Wait()
		c.stopErr = errors.Join(append(errs, c.release())...)
	})
	return c.stopErr
}

// release gives back what a cluster holds besides its processes.
func (c *Cluster) release() error {
	if c.proxy != nil {
		c.proxy.Close()
	}
	for _, p := range append([]*port{c.etcdPort, c.peerPort, c.apiPort, c.proxyPort}, c.addedPorts...) {
		if p != nil {
			p.Release()
		}
	}
	if c.dir == "" {
		return nil
	}
	return errors.Join(os.RemoveAll(c.dir), c.reaper.ForgetDir(c.dir))
}

// Name is the cluster's name.
func (c *Cluster) Name() string { return c.options.Name }

// Release is the Kubernetes release of the control plane.
func (c *Cluster) Release() binaries.Release { return c.options.Release }

// Client is a client of the cluster's administrator, without a rate limit.
func (c *Cluster) Client() kubernetes.Interface { return c.client }

// Component returns a component by its program's name, such as binaries.APIServer. It panics if the
// cluster has no such component.
func (c *Cluster) Component(name string) *Component {
	var names []string
	for _, component := range c.components {
		if component.Name == name {
			return component
		}
		names = append(names, component.Name)
	}
	panic(fmt.Sprintf("cluster %s has no %s, only %s", c.Name(), name, strings.Join(names, ", ")))
}

// Components lists the cluster's components.
func (c *Cluster) Components() []*Component { return c.components }

// EtcdURL is where the cluster's etcd serves, without credentials.
func (c *Cluster) EtcdURL() string { return "http://" + c.etcdPort.Address() }

// HasProxy says whether the cluster was started with Options.FaultProxy.
func (c *Cluster) HasProxy() bool { return c.proxy != nil }

// Proxy is the fault-injecting proxy in front of the API server. It panics if the cluster was
// started without Options.FaultProxy.
func (c *Cluster) Proxy() *Proxy {
	if c.proxy == nil {
		panic("cluster " + c.Name() + " was started without FaultProxy")
	}
	return c.proxy
}
