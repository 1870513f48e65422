package binaries

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// CacheVariable names the environment variable that overrides the cache folder.
const CacheVariable = "JOBFERRY_CACHE"

// Paths are the absolute file names of a release's programs, by program name.
type Paths map[string]string

// CacheDir is the folder that built programs are kept in.
func CacheDir() (string, error) {
	if dir := os.Getenv(CacheVariable); dir != "" {
		return filepath.Abs(dir)
	}
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache folder (set %s): %w", CacheVariable, err)
	}
	return filepath.Join(base, "jobferry"), nil
}

// Ensure returns the programs of a release, building those that the cache lacks. It may be called
// by several processes at once: one builds, the others wait for it. report may be nil.
//
// Errors: no go command, no checkout, a failed build (with the compiler's output), a cancelled
// context.
func Ensure(ctx context.Context, release Release, report func(Progress)) (Paths, error) {
	return ensure(ctx, release.programs(), report)
}

// Tool returns a program that belongs to no release, such as Helm, and builds it if the cache lacks
// it, as Ensure does.
func Tool(ctx context.Context, name string, report func(Progress)) (string, error) {
	for _, p := range tools {
		if p.name == name {
			paths, err := ensure(ctx, []program{p}, report)
			return paths[name], err
		}
	}
	return "", fmt.Errorf("the rig has no tool %q", name)
}

// ModuleDir is the folder with the source of a Go module that one of the folders under e2e/versions
// requires: manifests that belong to a program are taken from there, at the version that was built.
func ModuleDir(ctx context.Context, version, path string) (string, error) {
	versions, err := versionsDir()
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", path)
	cmd.Dir = filepath.Join(versions, version)
	cmd.Env = append(os.Environ(), buildEnv...)
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("folder of module %s: %w", path, err)
	}
	return strings.TrimSpace(string(out)), nil
}

func ensure(ctx context.Context, programs []program, report func(Progress)) (Paths, error) {
	if report == nil {
		report = func(Progress) {}
	}
	cache, err := CacheDir()
	if err != nil {
		return nil, err
	}
	versions, err := versionsDir()
	if err != nil {
		return nil, err
	}
	goVersion, err := goVersion(ctx)
	if err != nil {
		return nil, err
	}
	paths := Paths{}
	for i, p := range programs {
		m, err := loadModule(versions, p.module, goVersion)
		if err != nil {
			return nil, err
		}
		dir := filepath.Join(cache, "rig", p.module+"-"+m.digest)
		paths[p.name] = filepath.Join(dir, p.name)
		b := build{program: p, module: m, dir: dir, progress: Progress{Program: p.name, Number: i + 1, Of: len(programs)}}
		if err := b.ensure(ctx, report); err != nil {
			return nil, fmt.Errorf("build %s: %w", p.name, err)
		}
	}
	return paths, nil
}

func goVersion(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOVERSION").Output()
	if err != nil {
		return "", fmt.Errorf("the go command is needed to build the rig's programs: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// build is the making of one program.
type build struct {
	program
	module   module
	dir      string
	progress Progress
}

func (b build) target() string { return filepath.Join(b.dir, b.name) }

func (b build) ensure(ctx context.Context, report func(Progress)) error {
	if exists(b.target()) {
		return nil
	}
	if err := os.MkdirAll(b.dir, 0o755); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ticker := startTicker(ctx, b.progress, report)
	defer ticker.finish()

	ticker.enter(Waiting)
	unlock, err := lock(ctx, filepath.Join(b.dir, ".lock"))
	if err != nil {
		return err
	}
	defer unlock()
	if exists(b.target()) {
		return nil // another process has built it meanwhile
	}
	ticker.enter(Building)
	return b.compile(ctx)
}

func (b build) compile(ctx context.Context) error {
	temporary := b.target() + ".new"
	defer os.Remove(temporary)
	args := append([]string{"build", "-o", temporary}, buildFlags(b.module.kube)...)
	cmd := exec.CommandContext(ctx, "go", append(args, b.pkg)...)
	cmd.Dir = b.module.dir
	cmd.Env = append(os.Environ(), buildEnv...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s: %w\n%s", b.pkg, err, tail(string(out), 20))
	}
	return os.Rename(temporary, b.target())
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func tail(s string, lines int) string {
	all := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
