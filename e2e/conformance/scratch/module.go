package scratch

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/modfile"

	"github.com/jobferry/jobferry/e2e/checkout"
	"github.com/jobferry/jobferry/e2e/rig/binaries"
)

const (
	kubernetesPath = "k8s.io/kubernetes"
	productPath    = "github.com/jobferry/jobferry"
	modulePath     = "scratch.jobferry.example"
)

// Module is a Go module of its own, with an upstream module, such as Kubernetes, and Jobferry's
// packages if asked for.
type Module struct {
	// Dir is its folder, Version the version of the upstream module.
	Dir, Version  string
	path, sources string
}

// New makes a module with Kubernetes of a release, in an empty folder.
func New(ctx context.Context, dir string, release binaries.Release, withProduct bool) (*Module, error) {
	return NewOf(ctx, dir, "v"+string(release), kubernetesPath, withProduct)
}

// NewOf makes one with the module of a path that a folder under e2e/versions requires.
func NewOf(ctx context.Context, dir, name, path string, withProduct bool) (*Module, error) {
	m := &Module{Dir: dir, path: path}
	var err error
	if m.sources, err = binaries.ModuleDir(ctx, name, path); err != nil {
		return nil, err
	}
	_, m.Version, _ = strings.Cut(filepath.Base(m.sources), "@")
	if _, err := os.Stat(m.sources); err != nil {
		return nil, fmt.Errorf("sources of %s %s: %w", path, m.Version, err)
	}
	versions, err := os.ReadFile(checkout.Path("e2e", "versions", name, "go.mod"))
	if err != nil {
		return nil, err
	}
	root := ""
	if withProduct {
		root = checkout.Path()
	}
	goMod, err := goMod(versions, root)
	if err != nil {
		return nil, err
	}
	sums, err := concat(checkout.Path("e2e", "versions", name, "go.sum"), checkout.Path("go.sum"), checkout.Path("e2e", "go.sum"))
	if err != nil {
		return nil, err
	}
	return m, m.WriteAll(map[string]string{"go.mod": string(goMod), "go.sum": string(sums)})
}

// goMod turns the go.mod of a folder under e2e/versions into that of a scratch module. The
// replacements of Kubernetes' libraries hold for the product's packages, too, if there is a
// product: one version of each library.
func goMod(versions []byte, root string) ([]byte, error) {
	f, err := modfile.Parse("go.mod", versions, nil)
	if err != nil {
		return nil, err
	}
	if err := f.AddModuleStmt(modulePath); err != nil {
		return nil, err
	}
	for _, t := range f.Tool {
		if err := f.DropTool(t.Path); err != nil {
			return nil, err
		}
	}
	if root != "" {
		f.AddNewRequire(productPath, "v0.0.0", false)
		if err := f.AddReplace(productPath, "", root, ""); err != nil {
			return nil, err
		}
	}
	f.Cleanup()
	return f.Format()
}

func concat(files ...string) ([]byte, error) {
	var all [][]byte
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		all = append(all, content)
	}
	return bytes.Join(all, []byte("\n")), nil
}

// Cache is the folder that has the sources of all modules.
func (m *Module) Cache() string { return filepath.Dir(filepath.Dir(m.sources)) } // of k8s.io/kubernetes@v1...

// Source is a file of the upstream module, by its path there, after changes.
func (m *Module) Source(path string, changes ...Change) (string, error) {
	text, err := os.ReadFile(filepath.Join(m.sources, path))
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", m.path, m.Version, err)
	}
	return Apply(path, string(text), changes...)
}

// WriteAll writes files of the module, by their paths in it.
func (m *Module) WriteAll(files map[string]string) error {
	for path, text := range files {
		file := filepath.Join(m.Dir, path)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// CompileTest completes go.mod and go.sum, after all files have been written, and compiles the
// tests of the module.
func (m *Module) CompileTest(ctx context.Context, target string) error {
	if err := m.run(ctx, "mod", "tidy"); err != nil {
		return err
	}
	return m.compile(ctx, target, ".")
}

// CompileTestOf compiles the tests of a package of the upstream module, as they are.
func (m *Module) CompileTestOf(ctx context.Context, target, pkg string) error {
	return m.compile(ctx, target, "-mod=mod", m.path+"/"+pkg) // it completes go.mod and go.sum
}

func (m *Module) compile(ctx context.Context, target string, args ...string) error {
	kube := ""
	if m.path == kubernetesPath {
		kube = m.Version
	}
	all := append([]string{"test", "-c", "-vet=off", "-o", target}, binaries.BuildFlags(kube)...)
	return m.run(ctx, append(all, args...)...)
}

func (m *Module) run(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = m.Dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false", "GOWORK=off")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s, with %s %s: %w\n%s", strings.Join(args, " "), m.path, m.Version, err, bytes.TrimSpace(out))
	}
	return nil
}
