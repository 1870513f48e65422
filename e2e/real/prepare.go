package real

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/jobferry/jobferry/e2e/checkout"
	"github.com/jobferry/jobferry/e2e/product"
	"github.com/jobferry/jobferry/e2e/real/image"
	"github.com/jobferry/jobferry/e2e/real/node"
	"github.com/jobferry/jobferry/e2e/real/sandbox"
	"github.com/jobferry/jobferry/e2e/rig/binaries"
)

// Names of the images.
const (
	imageRepository = "jobferry.example/jobferry"
	imageTag        = "v0.0.0-e2e"
	busyboxImage    = "docker.io/library/busybox:1.36"
)

// What AddImage makes images of.
const (
	Pause   = "pause"
	Busybox = "busybox"
	Bash    = "bash" // and busybox
)

// nodePrograms are what a node runs.
var nodePrograms = []string{binaries.Kubelet, binaries.Containerd, binaries.ContainerdShim, binaries.Ctr, binaries.CoreDNS}

// Materials are what the story needs, made before the sandbox, which has no network to the outside.
type Materials struct {
	// Dir is the folder that all files of the story are in.
	Dir string
	// Root is the folder of the product's sources.
	Root string
	// Programs are those of nodes, by name.
	Programs map[string]string
	// Bin is a folder with kubectl, helm and kubectl-jobferry.
	Bin string
	// Images are archives.
	Images []string

	roots map[string]image.Image // what AddImage makes images of
}

const materialsFile = "materials.json"

// Step makes some of the materials.
type Step struct {
	What string
	Make func(*Materials, context.Context) error
}

// Prepare builds programs and images into dir, and more if asked to, and tells what it does.
func Prepare(ctx context.Context, dir string, out io.Writer, more ...Step) (*Materials, error) {
	m := &Materials{Dir: dir, Root: checkout.Path(), Programs: map[string]string{}, Bin: filepath.Join(dir, "bin")}
	if err := os.MkdirAll(m.Bin, 0o755); err != nil {
		return nil, err
	}
	for _, step := range append([]Step{
		{"programs", (*Materials).buildPrograms},
		{"image of Jobferry, by the stages of its Dockerfile", (*Materials).buildImage},
		{"images of pause and busybox", (*Materials).buildOthers},
	}, more...) {
		fmt.Fprintln(out, "build:", step.What)
		if err := step.Make(m, ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", step.What, err)
		}
	}
	content, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	return m, os.WriteFile(filepath.Join(dir, materialsFile), content, 0o644)
}

// ReadMaterials reads what Prepare made in dir.
func ReadMaterials(dir string) (*Materials, error) {
	content, err := os.ReadFile(filepath.Join(dir, materialsFile))
	if err != nil {
		return nil, err
	}
	m := &Materials{}
	return m, json.Unmarshal(content, m)
}

func (m *Materials) buildPrograms(ctx context.Context) error {
	cluster, err := binaries.Ensure(ctx, binaries.Current, binaries.Lines(os.Stderr))
	if err != nil {
		return err
	}
	helm, err := binaries.Tool(ctx, binaries.Helm, binaries.Lines(os.Stderr))
	if err != nil {
		return err
	}
	for _, name := range nodePrograms {
		if m.Programs[name], err = binaries.Tool(ctx, name, binaries.Lines(os.Stderr)); err != nil {
			return err
		}
	}
	for name, program := range map[string]string{"kubectl": cluster[binaries.Kubectl], "helm": helm} {
		if err := os.Symlink(program, filepath.Join(m.Bin, name)); err != nil {
			return err
		}
	}
	_, err = product.Build(ctx, m.Bin, "kubectl-jobferry")
	return err
}

// compile builds a static program.
func (m *Materials) compile(ctx context.Context, dir, program, pkg string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", program, pkg)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s: %w\n%s", pkg, err, out)
	}
	return nil
}

func (m *Materials) buildImage(ctx context.Context) error {
	archive := filepath.Join(m.Dir, "jobferry.tar")
	m.Images = append(m.Images, archive)
	return sandbox.Isolated(ctx, BuildImageCommand, m.Root, m.Dir, archive)
}

func (m *Materials) buildOthers(ctx context.Context) error {
	pause := filepath.Join(m.Dir, "pause")
	if err := m.compile(ctx, filepath.Join(m.Root, "e2e"), filepath.Join(pause, "pause"), "./real/pause"); err != nil {
		return err
	}
	busybox, bash := filepath.Join(m.Dir, "busybox"), filepath.Join(m.Dir, "bash")
	if err := errors.Join(busyboxRoot(ctx, busybox), busyboxRoot(ctx, bash)); err != nil {
		return err
	}
	if err := copyProgram("/bin/bash-static", filepath.Join(bash, "bin", "bash")); err != nil {
		return err
	}
	m.roots = map[string]image.Image{
		Pause:   {Root: pause, User: "65535:65535", Entrypoint: []string{"/pause"}},
		Busybox: {Root: busybox, Cmd: []string{"sh"}},
		Bash:    {Root: bash, Cmd: []string{"bash"}},
	}
	return errors.Join(m.AddImage(Pause, node.PauseImage), m.AddImage(Busybox, busyboxImage))
}

// AddImage gives nodes an image of Pause, Busybox or Bash by a name.
func (m *Materials) AddImage(of, name string) error {
	i := m.roots[of]
	i.Name = name
	archive := filepath.Join(m.Dir, fmt.Sprintf("image-%d.tar", len(m.Images)))
	m.Images = append(m.Images, archive)
	return i.Write(archive)
}

// busyboxRoot makes a root of the machine's static busybox, with a link for each of its programs.
func busyboxRoot(ctx context.Context, root string) error {
	for _, dir := range []string{"bin", "etc", "tmp", "proc", "sys", "dev"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			return err
		}
	}
	if err := copyProgram("/bin/busybox", filepath.Join(root, "bin", "busybox")); err != nil {
		return err
	}
	names, err := exec.CommandContext(ctx, "/bin/busybox", "--list").Output()
	if err != nil {
		return err
	}
	for _, name := range strings.Fields(string(names)) {
		if name == "busybox" {
			continue
		}
		if err := os.Symlink("busybox", filepath.Join(root, "bin", name)); err != nil {
			return err
		}
	}
	return nil
}

func copyProgram(from, to string) error {
	program, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, program, 0o755)
}
