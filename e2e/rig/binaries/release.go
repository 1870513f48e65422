package binaries

import (
	"fmt"
	"os"
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
	// Helm4 is a client of the hub. Charts are installed with Helm.
	Helm4 = "helm4"
	// Kubelet, Containerd, its shim and its client make real nodes; tools, too.
	Kubelet        = "kubelet"
	Containerd     = "containerd"
	ContainerdShim = "containerd-shim-runc-v2"
	Ctr            = "ctr"
	// CoreDNS resolves the names of a cluster's Services for Pods on real nodes.
	CoreDNS = "coredns"
	// Kueue is Kueue's manager, which runs beside a hub; a tool, too. See ModuleDir for its CRDs
	// and webhooks.
	Kueue = "kueue"
	// JobSet is JobSet's manager, which runs beside a hub; a tool, too, with its manifests in its
	// module.
	JobSet = "jobset"
	// Trainer is Kubeflow Trainer's manager, which makes JobSets; a tool, too, with its manifests in
	// its module.
	Trainer = "trainer"
	// Terraform and its provider for Kubernetes are clients of the hub; tools, too.
	Terraform         = "terraform"
	TerraformProvider = "terraform-provider-kubernetes"
)

// Release is a Kubernetes minor version that the rig can run, such as "1.36".
type Release string

const (
	// Current is what clusters run by default.
	Current Release = "1.36"
	// Oldest is the oldest release that tests run without being asked to. See HubVariable.
	Oldest Release = "1.34"
)

// releases are all that the rig can run, newest first. Each has a folder under e2e/versions, whose
// go.mod pins the patch release.
var releases = []Release{"1.37", "1.36", "1.35", "1.34", "1.33"}

// HubVariable and WorkerVariable name the environment variables that choose the releases of the hub
// and of the workers in tests that can run with any. See Hub and Worker.
const (
	HubVariable    = "RIG_HUB"
	WorkerVariable = "RIG_WORKER"
)

// Hub is the release of the hub that the environment asks for, or else another. Whoever starts the
// cluster checks it.
func Hub(otherwise Release) Release { return asked(HubVariable, otherwise) }

// Worker is that of the workers.
func Worker(otherwise Release) Release { return asked(WorkerVariable, otherwise) }

// Asked says whether the environment asks for a release, of the hub or of the workers.
func Asked() bool { return Hub("") != "" || Worker("") != "" }

func asked(variable string, otherwise Release) Release {
	if release := os.Getenv(variable); release != "" {
		return Release(release)
	}
	return otherwise
}

// program says where one program comes from.
type program struct {
	name   string // its file name in the cache
	module string // the folder under e2e/versions that pins it
	pkg    string // its main package
	// released says that the release server of Kubernetes has it, under the same name. It has the
	// kubelet, too, but one that needs the libraries of a distribution.
	released bool
}

// shared are the programs that every release uses.
var shared = []program{
	{name: Etcd, module: module136, pkg: "go.etcd.io/etcd/server/v3"},
	{name: Kwok, module: "kwok", pkg: "sigs.k8s.io/kwok/cmd/kwok"},
	{name: Kubectl, module: module136, pkg: "k8s.io/kubernetes/cmd/kubectl", released: true},
}

// module136 is the module whose etcd and kubectl serve the clusters of all releases.
const module136 = "v1.36"

// unreleased are the programs that belong to no release.
func unreleased() []program { return slices.Concat(tools, shared) }

// tools are the programs that some tests use, and no cluster needs.
var tools = []program{
	{name: Helm, module: "helm", pkg: "helm.sh/helm/v3/cmd/helm"},
	{name: Helm4, module: "helm4", pkg: "helm.sh/helm/v4/cmd/helm"},
	{name: Kubelet, module: "kubelet", pkg: "k8s.io/kubernetes/cmd/kubelet"},
	{name: Containerd, module: "containerd", pkg: "github.com/containerd/containerd/v2/cmd/containerd"},
	{name: ContainerdShim, module: "containerd", pkg: "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2"},
	{name: Ctr, module: "containerd", pkg: "github.com/containerd/containerd/v2/cmd/ctr"},
	{name: CoreDNS, module: "coredns", pkg: "github.com/coredns/coredns"},
	{name: Kueue, module: "kueue", pkg: "sigs.k8s.io/kueue/cmd/kueue"},
	{name: JobSet, module: "jobset", pkg: "sigs.k8s.io/jobset"},
	{name: Trainer, module: "trainer", pkg: "github.com/kubeflow/trainer/v2/cmd/trainer-controller-manager"},
	{name: Terraform, module: "terraform", pkg: "github.com/hashicorp/terraform"},
	{name: TerraformProvider, module: "terraform-provider-kubernetes", pkg: "github.com/hashicorp/terraform-provider-kubernetes"},
}

// controlPlane are the programs that differ between releases.
func controlPlane(r Release) []program {
	module := "v" + string(r)
	return []program{
		{APIServer, module, "k8s.io/kubernetes/cmd/kube-apiserver", true},
		{ControllerManager, module, "k8s.io/kubernetes/cmd/kube-controller-manager", true},
		{Scheduler, module, "k8s.io/kubernetes/cmd/kube-scheduler", true},
	}
}

// Tools lists the programs that Tool can build.
func Tools() []string {
	var names []string
	for _, p := range unreleased() {
		names = append(names, p.name)
	}
	return names
}

// Releases lists the releases that the rig can run, newest first.
func Releases() []Release { return slices.Clone(releases) }

// ParseRelease accepts "1.36" and "v1.36"; the empty string stands for Current.
func ParseRelease(s string) (Release, error) {
	if s == "" {
		return Current, nil
	}
	r := Release(strings.TrimPrefix(s, "v"))
	if !slices.Contains(releases, r) {
		return "", fmt.Errorf("the rig has no Kubernetes release %q, only %v", s, releases)
	}
	return r, nil
}

func (r Release) programs() []program { return append(slices.Clone(shared), controlPlane(r)...) }

// Version is the exact version of a release, such as "v1.36.3".
func Version(r Release) (string, error) {
	versions, err := versionsDir()
	if err != nil {
		return "", err
	}
	m, err := loadModule(versions, "v"+string(r), "")
	return m.kube, err
}
