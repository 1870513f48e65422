package real

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/jobferry/jobferry/e2e/real/node"
	"github.com/jobferry/jobferry/e2e/real/sandbox"
	"github.com/jobferry/jobferry/e2e/rig"
)

// The clusters. West has the built-in Job controller, edge the embedded one.
const (
	Hub  = "hub"
	West = "west"
	Edge = "edge"
)

var names = []string{Hub, West, Edge}

// World are the clusters, with a node each.
type World struct {
	materials *Materials
	clusters  map[string]*rig.Cluster
	doors     []*rig.Proxy
	nodes     []*node.Node
	// Kubeconfig is a file with a context of each cluster's name; the hub's is the current one.
	Kubeconfig string
}

// place is where a cluster is in the sandbox's network.
type place struct {
	address  netip.Addr   // of its API server and its node
	services netip.Prefix // of its Services; the first is its API server's, as Pods see it
	dns      netip.Addr   // of its CoreDNS, as Pods see it
	pods     netip.Prefix
}

func placeOf(index int) place {
	return place{
		address:  netip.AddrFrom4([4]byte{10, 99, 0, byte(index + 1)}),
		services: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 96, byte(index + 1), 0}), 24),
		dns:      netip.AddrFrom4([4]byte{10, 96, byte(index + 1), 10}),
		pods:     netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 244, byte(index + 1), 0}), 24),
	}
}

// NewWorld makes a sandbox of this process's namespaces, and starts the clusters in it.
func NewWorld(ctx context.Context, m *Materials) (*World, error) {
	if err := sandbox.Prepare(); err != nil {
		return nil, err
	}
	w := &World{materials: m, clusters: map[string]*rig.Cluster{}, Kubeconfig: filepath.Join(m.Dir, "kubeconfig")}
	var options []rig.Options
	for i, name := range names {
		p := placeOf(i)
		for _, prefix := range []netip.Prefix{
			netip.PrefixFrom(p.address, 24), netip.PrefixFrom(p.services.Addr().Next(), 32), netip.PrefixFrom(p.dns, 32),
		} {
			if err := sandbox.Address(prefix); err != nil {
				return nil, err
			}
		}
		options = append(options, clusterOptions(name, p))
	}
	started, err := rig.StartAll(ctx, options...)
	if err != nil {
		return nil, err
	}
	for i, c := range started {
		w.clusters[c.Name()] = c
		if err := w.open(ctx, c, placeOf(i)); err != nil {
			return nil, errors.Join(err, w.Stop())
		}
	}
	return w, w.writeKubeconfig()
}

func clusterOptions(name string, p place) rig.Options {
	o := rig.Options{
		Name: name, Kubelets: true, Addresses: []netip.Addr{p.address}, ServiceRange: p.services,
		Controllers: []string{"endpointslice-controller"},
		APIServerFlags: []string{
			"--kubelet-preferred-address-types=InternalIP",
			"--enable-aggregator-routing", // there is no kube-proxy: API servers go to Pods themselves
		},
	}
	if name == Edge {
		o.JobController = rig.None
	}
	return o
}

// NodeName is the name of a cluster's node.
func NodeName(cluster string) string { return "jobferry-real-" + cluster }

// Cluster is one of the clusters.
func (w *World) Cluster(name string) *rig.Cluster { return w.clusters[name] }

// Materials are what the world is made of.
func (w *World) Materials() *Materials { return w.materials }

// open has Pods reach the API server by its Service's address, as kube-proxy would, and starts the
// node.
func (w *World) open(ctx context.Context, c *rig.Cluster, p place) error {
	door, err := rig.NewProxy(netip.AddrPortFrom(p.services.Addr().Next(), 443).String(), strings.TrimPrefix(c.RESTConfig().Host, "https://"))
	if err != nil {
		return err
	}
	w.doors = append(w.doors, door)
	n, err := node.Start(ctx, node.Options{
		Name: NodeName(c.Name()), Dir: filepath.Join(w.materials.Dir, "node-"+c.Name()), Kubeconfig: c.Kubeconfig(),
		Address: p.address, DNS: p.dns, Pods: p.pods, Port: 10250, Images: w.materials.Images, Programs: w.materials.Programs,
	})
	if err != nil {
		return err
	}
	w.nodes = append(w.nodes, n)
	_, err = rig.Objects(c.Client().CoreV1().RESTClient(), "nodes", "").Until(ctx, func(o runtime.Object) bool {
		n, ok := o.(*corev1.Node)
		return ok && nodeReady(n)
	})
	if err != nil {
		return fmt.Errorf("node of %s: %w\n%s", c.Name(), err, n.Log("kubelet"))
	}
	return nil
}

func nodeReady(n *corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// writeKubeconfig writes what a user has: contexts of all clusters, by addresses that Pods reach,
// too.
func (w *World) writeKubeconfig() error {
	all := clientcmdapi.NewConfig()
	for i, name := range names {
		one, err := clientcmd.Load(w.clusters[name].KubeconfigBytes())
		if err != nil {
			return err
		}
		_, port, _ := strings.Cut(strings.TrimPrefix(one.Clusters[name].Server, "https://"), ":")
		one.Clusters[name].Server = "https://" + placeOf(i).address.String() + ":" + port
		all.Clusters[name], all.AuthInfos[name], all.Contexts[name] = one.Clusters[name], one.AuthInfos[name], one.Contexts[name]
	}
	all.CurrentContext = Hub
	return clientcmd.WriteToFile(*all, w.Kubeconfig)
}

// Stop ends the clusters. The nodes end with the sandbox.
func (w *World) Stop() error {
	var errs []error
	for _, door := range w.doors {
		door.Close()
	}
	for _, c := range w.clusters {
		errs = append(errs, c.Stop())
	}
	return errors.Join(errs...)
}

// Logs are the last lines of what the nodes' programs wrote.
func (w *World) Logs() string {
	var text strings.Builder
	for _, n := range w.nodes {
		for _, program := range []string{"containerd", "kubelet", "coredns"} {
			fmt.Fprintf(&text, "--- %s of %s\n%s\n", program, n.Name, n.Log(program))
		}
	}
	return text.String()
}

// environment is a user's: the programs on the PATH, and the kubeconfig.
func (w *World) environment() []string {
	return append(os.Environ(), "KUBECONFIG="+w.Kubeconfig, "PATH="+w.materials.Bin+":"+os.Getenv("PATH"), "HOME="+w.materials.Dir)
}
