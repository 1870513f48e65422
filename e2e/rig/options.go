package rig

import (
	"fmt"
	"net/netip"
	"os"
	"regexp"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/jobferry/jobferry/e2e/rig/binaries"
)

// JobController says who runs a cluster's Jobs.
type JobController string

const (
	// BuiltIn is the Job controller of kube-controller-manager. The default.
	BuiltIn JobController = "BuiltIn"
	// None starts kube-controller-manager without its Job controller: for clusters where another
	// takes its place.
	None JobController = "None"
)

// Options choose what a cluster is like. The zero value is a cluster of the current release with
// the built-in Job controller and no Nodes.
type Options struct {
	// Name of the cluster, a DNS label: it names the kubeconfig's context and the folder of logs.
	// Default "cluster".
	Name string
	// Release is the Kubernetes version of the control plane. Default binaries.Current.
	Release binaries.Release
	// JobController says who runs the Jobs. Default BuiltIn.
	JobController JobController
	// Nodes are simulated. Without any, neither kube-scheduler nor kwok is started, and no Pod ever
	// runs: a hub.
	Nodes []Nodes
	// Pods is what Pods do that don't say so themselves by labels.
	Pods PodDefaults
	// Kubelets says that the nodes are real: kube-scheduler runs, nothing is simulated, and whoever
	// starts the cluster starts containerd and kubelets.
	Kubelets bool
	// Addresses are those that the API server is reached at besides loopback. With any, it listens
	// on all.
	Addresses []netip.Addr
	// ServiceRange is where Services get their addresses. Default 10.0.0.0/24.
	ServiceRange netip.Prefix
	// FaultProxy puts a fault-injecting proxy in front of the API server. See Cluster.Proxy.
	FaultProxy bool
	// Audit logs every finished request to the API server to a file. See Cluster.Requests.
	Audit bool
	// SignedKubelets says that the API server calls only kubelets whose certificate is of the
	// cluster's authority, and that the controller manager signs approved requests for one.
	SignedKubelets bool
	// PriorityAndFairness turns the API server's own request queuing on. Default off: it costs CPU
	// on a small machine, and the limits are set so high that nothing would queue.
	PriorityAndFairness bool
	// Controllers are controllers of kube-controller-manager to start besides the rig's own choice.
	Controllers []string
	// APIServerFlags, ControllerManagerFlags and SchedulerFlags are added to the command lines, and
	// win.
	APIServerFlags, ControllerManagerFlags, SchedulerFlags []string
	// Progress is told what is built if the programs are not in the cache yet. Default: lines on
	// standard error.
	Progress func(binaries.Progress)
}

func (o Options) report() func(binaries.Progress) {
	if o.Progress == nil {
		return binaries.Lines(os.Stderr)
	}
	return o.Progress
}

// PodDefaults is what simulated Pods do.
type PodDefaults struct {
	// StartAfter is the time from a Pod's binding to its containers running. Default 0.
	StartAfter time.Duration
	// RunFor is the time from the containers' start to their end. Default 100 ms.
	RunFor time.Duration
	// StopAfter is the time from a Pod's deletion to its containers' end. Default 0.
	StopAfter time.Duration
}

// Nodes is a number of alike simulated nodes.
type Nodes struct {
	// Count of nodes of this shape. Default 1.
	Count int
	// Prefix of the nodes' names; a number follows. Default "node".
	Prefix string
	// CPU and Memory are quantities. Defaults "32" and "256Gi".
	CPU, Memory string
	// Pods is how many Pods fit. Default 110, as a kubelet's.
	Pods int
	// Extended are further resources, such as "nvidia.com/gpu": "8".
	Extended map[string]string
	// Labels come on top of the hostname, architecture and operating system labels.
	Labels map[string]string
	Taints []corev1.Taint
}

const (
	defaultName   = "cluster"
	defaultRunFor = 100 * time.Millisecond
)

var defaultServiceRange = netip.MustParsePrefix("10.0.0.0/24")

var dnsLabel = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// complete checks the options and fills in the defaults.
func (o Options) complete() (Options, error) {
	if o.Name == "" {
		o.Name = defaultName
	}
	if !dnsLabel.MatchString(o.Name) {
		return o, fmt.Errorf("cluster name %q is no DNS label", o.Name)
	}
	release, err := binaries.ParseRelease(string(o.Release))
	if err != nil {
		return o, err
	}
	o.Release = release
	switch o.JobController {
	case "":
		o.JobController = BuiltIn
	case BuiltIn, None:
	default:
		return o, fmt.Errorf("unknown job controller %q", o.JobController)
	}
	if !o.ServiceRange.IsValid() {
		o.ServiceRange = defaultServiceRange
	}
	if o.Kubelets && len(o.Nodes) > 0 {
		return o, fmt.Errorf("cluster %q has both kubelets and simulated nodes", o.Name)
	}
	if o.Pods.RunFor == 0 {
		o.Pods.RunFor = defaultRunFor
	}
	return o, nil
}
