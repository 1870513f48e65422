package binaries

import (
	"fmt"
	"slices"
	"strings"
)

// Names of the programs, as they are called in the cache.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kubectl           = "kubectl"
	Kwok              = "kwok"
	// Helm is a tool: no cluster runs it. See Tool.
	Helm = "helm"
	// Kubelet, Containerd, its shim and its client make real nodes; tools, too.
	Kubelet        = "kubelet"
	Containerd     = "containerd"
	ContainerdShim = "containerd-shim-runc-v2"
	Ctr            = "ctr"
	// Kueue is Kueue's manager, which runs beside a hub; a tool, too. See ModuleDir for its CRDs
	// and webhooks.
	Kueue = "kueue"
)

// Release is a Kubernetes minor version that the rig can run, such as "1.36".
type Release string

const (
	// Current is the newest release that Jobferry supports; clusters run it by default.
	Current Release = "1.36"
	// Oldest is the oldest release that the rig runs.
	Oldest Release = "1.34"
)

// program says where one program comes from.
type program struct {
	name   string // its file name in the cache
	module string // the folder under e2e/versions that pins it
	pkg    string // its main package
}

// shared are the programs that every release uses.
var shared = []program{
	{Etcd, "v1.36", "go.etcd.io/etcd/server/v3"},
	{Kwok, "kwok", "sigs.k8s.io/kwok/cmd/kwok"},
	{Kubectl, "v1.36", "k8s.io/kubernetes/cmd/kubectl"},
}

// tools are the programs that some tests use, and no cluster needs.
var tools = []program{
	{Helm, "helm", "helm.sh/helm/v3/cmd/helm"},
	{Kubelet, "kubelet", "k8s.io/kubernetes/cmd/kubelet"},
	{Containerd, "containerd", "github.com/containerd/containerd/v2/cmd/containerd"},
	{ContainerdShim, "containerd", "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2"},
	{Ctr, "containerd", "github.com/containerd/containerd/v2/cmd/ctr"},
	{Kueue, "kueue", "sigs.k8s.io/kueue/cmd/kueue"},
}

// controlPlane are the programs that differ between releases.
func controlPlane(r Release) []program {
	module := "v" + string(r)
	return []program{
		{APIServer, module, "k8s.io/kubernetes/cmd/kube-apiserver"},
		{ControllerManager, module, "k8s.io/kubernetes/cmd/kube-controller-manager"},
		{Scheduler, module, "k8s.io/kubernetes/cmd/kube-scheduler"},
	}
}

// Tools lists the programs that Tool can build.
func Tools() []string {
	var names []string
	for _, p := range tools {
		names = append(names, p.name)
	}
	return names
}

// Releases lists the releases that the rig can run, newest first.
func Releases() []Release { return []Release{Current, Oldest} }

// ParseRelease accepts "1.36" and "v1.36"; the empty string stands for Current.
func ParseRelease(s string) (Release, error) {
	if s == "" {
		return Current, nil
	}
	r := Release(strings.TrimPrefix(s, "v"))
	if !slices.Contains(Releases(), r) {
		return "", fmt.Errorf("the rig has no Kubernetes release %q, only %v", s, Releases())
	}
	return r, nil
}

func (r Release) programs() []program { return append(slices.Clone(shared), controlPlane(r)...) }
