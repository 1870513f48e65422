package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"github.com/jobferry/jobferry/e2e/bench/report"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/process"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// nodesPerWorker, with room for all Jobs of a run on each of them.
const nodesPerWorker = 8

// fleet are the clusters of a run, and the bench's own clients of them.
type fleet struct {
	hub     *site
	workers []*site
}

// site is one cluster.
type site struct {
	*rig.Cluster
	client kubernetes.Interface
	// embedded: jobferry-worker runs its Jobs.
	embedded bool
}

// clusters are a hub and workers, with audit logs.
func (o *FloodOptions) clusters() (hub rig.Options, workers []rig.Options) {
	all := append([]rig.Options{{Name: "hub"}}, plainWorkers(o.Workers, o.Jobs*o.Parallelism+o.Singles+o.Resting)...)
	for i := range all {
		all[i].Audit = true
		if o.Profiles != "" {
			all[i].APIServerFlags = []string{"--profiling=true"}
		}
	}
	return all[0], all[1:]
}

// plainWorkers are clusters with room for so many Pods on each of their nodes, which end at once.
func plainWorkers(n, pods int) (all []rig.Options) {
	for i := range n {
		all = append(all, rig.Options{
			Name:  fmt.Sprintf("worker-%d", i+1),
			Nodes: []rig.Nodes{{Count: nodesPerWorker, CPU: "4k", Memory: "4Ti", Pods: pods}},
			Pods:  rig.PodDefaults{RunFor: time.Millisecond},
		})
	}
	return all
}

// newFleet starts workers, and a hub or none.
func newFleet(ctx context.Context, hub []rig.Options, workers ...rig.Options) (*fleet, error) {
	clusters, err := rig.StartAll(ctx, slices.Concat(hub, workers)...)
	if err != nil {
		return nil, err
	}
	f := &fleet{}
	for i, c := range clusters {
		s, err := newSite(c)
		if err != nil {
			return nil, errors.Join(err, rig.StopAll(clusters...))
		}
		if i < len(hub) {
			f.hub = s
		} else {
			f.workers = append(f.workers, s)
		}
	}
	return f, nil
}

// newSite makes a client that takes as little of the machine as it can: it shares the cores with
// what is measured.
func newSite(c *rig.Cluster) (*site, error) {
	config := c.RESTConfig()
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	config.UserAgent = "jobferry-bench"
	client, err := kubernetes.NewForConfig(config)
	return &site{Cluster: c, client: client}, err
}

func (f *fleet) all() []*site {
	if f.hub == nil {
		return f.workers
	}
	return append([]*site{f.hub}, f.workers...)
}

func (f *fleet) stop() error {
	var clusters []*rig.Cluster
	for _, s := range f.all() {
		clusters = append(clusters, s.Cluster)
	}
	return rig.StopAll(clusters...)
}

// cpu is what the processes of the clusters have used so far.
func (f *fleet) cpu() (report.CPU, error) {
	used := report.CPU{Clusters: map[string]time.Duration{}}
	for _, s := range f.all() {
		for _, c := range s.Components() {
			u, err := process.UsageOf(c.PID())
			if err != nil {
				return used, fmt.Errorf("%s of %s: %w", c.Name, s.Name(), err)
			}
			of := report.InWorkers
			if s == f.hub {
				of = report.OnHub
			}
			used.Clusters[of+c.Name] += u.CPU
		}
	}
	return used, nil
}

// makeNamespace makes a namespace in some clusters, ready for Pods, and for Jobs that are
// dispatched.
func makeNamespace(ctx context.Context, name string, in ...*site) error {
	for _, s := range in {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{v1alpha1.LabelDispatch: v1alpha1.DispatchAllowed},
		}}
		if _, err := s.client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
			return err
		}
		account := rig.Object(s.client.CoreV1().RESTClient(), "serviceaccounts", name, "default")
		if _, err := account.Until(ctx, rig.Exists); err != nil {
			return err
		}
	}
	return nil
}
