package node

import (
	"context"
	"embed"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"text/template"
	"time"

	"github.com/jobferry/jobferry/e2e/real/sandbox"
	"github.com/jobferry/jobferry/e2e/rig/binaries"
)

// PauseImage is the image that holds the namespaces of each Pod.
const PauseImage = "jobferry.example/pause:v1"

// Options say what a node is like.
type Options struct {
	// Name is the node's name, and that of its cgroup.
	Name string
	// Dir is an empty folder for its files, on a file system that overlayfs takes.
	Dir string
	// Kubeconfig is a file by which it reaches its cluster.
	Kubeconfig string
	// Address is its own, Pods where its Pods get theirs.
	Address netip.Addr
	Pods    netip.Prefix
	// DNS is where its Pods' names are resolved, by a CoreDNS that it starts there: those of the
	// cluster's Services. Without it, none are.
	DNS netip.Addr
	// Port is where the kubelet listens.
	Port int
	// Images are archives to import.
	Images []string
	// Programs are the files of kubelet, containerd, its shim and its client, and CoreDNS.
	Programs map[string]string
}

// Node is a node that was started.
type Node struct {
	Options
	// Run is its folder for sockets, whose names must be short. Socket is containerd's.
	Run, Socket string
	// Cgroup is the path of its cgroup, PauseImage the image's name.
	Cgroup, PauseImage string
}

// Start starts containerd, imports the images, and starts CoreDNS and the kubelet. It returns
// before the node is Ready.
func Start(ctx context.Context, options Options) (*Node, error) {
	n := &Node{Options: options, Run: "/run/" + options.Name, PauseImage: PauseImage}
	n.Socket = n.Run + "/containerd.sock"
	var err error
	if n.Cgroup, err = sandbox.Cgroup(n.Name); err != nil {
		return nil, err
	}
	for _, dir := range []string{"cni", "containerd", "kubelet", "podlogs", "plugins"} {
		if err := os.MkdirAll(filepath.Join(n.Dir, dir), 0o755); err != nil {
			return nil, err
		}
	}
	for file, name := range map[string]string{
		"containerd.toml": "containerd.toml.tmpl", "kubelet.yaml": "kubelet.yaml.tmpl", "cni/10-pods.conflist": "cni.json.tmpl",
		"Corefile": "Corefile.tmpl",
	} {
		if err := n.write(file, name); err != nil {
			return nil, err
		}
	}
	if err := n.launch(binaries.Containerd, "--config="+filepath.Join(n.Dir, "containerd.toml")); err != nil {
		return nil, err
	}
	if err := n.awaitContainerd(ctx); err != nil {
		return nil, err
	}
	for _, image := range n.Images {
		if out, err := n.ctr(ctx, "images", "import", "--local", image); err != nil {
			return nil, fmt.Errorf("import %s: %w: %s", image, err, out)
		}
	}
	if n.DNS.IsValid() {
		if err := n.launch(binaries.CoreDNS, "-conf="+filepath.Join(n.Dir, "Corefile")); err != nil {
			return nil, err
		}
	}
	return n, n.launch(binaries.Kubelet,
		"--config="+filepath.Join(n.Dir, "kubelet.yaml"), "--kubeconfig="+n.Kubeconfig,
		"--root-dir="+filepath.Join(n.Dir, "kubelet"), "--cert-dir="+filepath.Join(n.Dir, "pki"),
		"--hostname-override="+n.Name, "--node-ip="+n.Address.String())
}

//go:embed *.tmpl
var templates embed.FS

var parsed = template.Must(template.ParseFS(templates, "*.tmpl"))

func (n *Node) write(file, name string) error {
	f, err := os.Create(filepath.Join(n.Dir, file))
	if err != nil {
		return err
	}
	defer f.Close()
	return parsed.ExecuteTemplate(f, name, n)
}

// launch starts a program of the node; its output is in Dir.
func (n *Node) launch(program string, args ...string) error {
	log, err := os.Create(filepath.Join(n.Dir, program+".log"))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(n.Programs[program], args...)
	cmd.Dir = n.Dir
	cmd.Env = []string{
		"HOME=" + n.Dir, "TMPDIR=" + n.Dir,
		// containerd looks for its shim here, and the kubelet for mount and the like
		"PATH=" + filepath.Dir(n.Programs[binaries.ContainerdShim]) + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
	}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for us
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s of %s: %w", program, n.Name, err)
	}
	go func() { _ = cmd.Wait() }() // it ends with the sandbox
	return nil
}

func (n *Node) ctr(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, n.Programs[binaries.Ctr], append([]string{"--address=" + n.Socket, "--namespace=k8s.io"}, args...)...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (n *Node) awaitContainerd(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for {
		out, err := n.ctr(ctx, "version")
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("containerd of %s doesn't answer: %w: %s\n%s", n.Name, err, out, n.Log(binaries.Containerd))
		case <-look.C:
		}
	}
}

// Log returns the last lines of a program's output.
func (n *Node) Log(program string) string {
	text, err := os.ReadFile(filepath.Join(n.Dir, program+".log"))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-30):], "\n")
}
