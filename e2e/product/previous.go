package product

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	utilversion "k8s.io/apimachinery/pkg/util/version"

	"github.com/jobferry/jobferry/e2e/checkout"
	"github.com/jobferry/jobferry/e2e/rig/binaries"
)

const (
	// previous is the release that upgrades are tested from: the tag of the last one. Until there is
	// a first one, it's the state of the main branch that first kept what it knows of a hub Job in
	// its status. Its libraries are today's: compiled once for both.
	previous = "3f1f4af8feb64244007768e8be8091c01de2cf76"
	// previousEnv names another tag or commit.
	previousEnv = "JOBFERRY_PREVIOUS"
)

// ErrNoHistory is returned if the checkout doesn't have the previous release: it's a shallow clone,
// or no clone at all.
var ErrNoHistory = errors.New("the checkout lacks the previous release: it needs the whole history (git fetch --unshallow --tags)")

// Release is an earlier state of the checkout, with its programs.
type Release struct {
	// Revision is its tag or commit.
	Revision string
	dir      string
}

// Path is something in the release, by its path from there.
func (r Release) Path(path ...string) string {
	return filepath.Join(append([]string{r.dir}, path...)...)
}

// Program is the file of the program of cmd/<name>.
func (r Release) Program(name string) string { return r.Path("bin", name) }

// Previous returns the previous release. It builds the release if the rig's cache lacks it, which
// takes minutes if the go command has built nothing like it before.
func Previous(ctx context.Context) (Release, error) {
	asked := os.Getenv(previousEnv)
	r := Release{Revision: asked}
	if asked == "" {
		r.Revision = previous
	}
	commit, err := output(ctx, checkout.Path(), "git", "rev-parse", "--verify", "--quiet", r.Revision+"^{commit}")
	if err != nil && asked == "" {
		return r, fmt.Errorf("%w: %s", ErrNoHistory, r.Revision)
	}
	if err != nil {
		return r, fmt.Errorf("%s=%s is no tag or commit of this checkout: %w", previousEnv, asked, err)
	}
	cache, err := binaries.CacheDir()
	if err != nil {
		return r, err
	}
	r.dir = filepath.Join(cache, "previous", commit)
	if _, err := os.Stat(r.dir); err == nil {
		return r, nil
	}
	return r, r.make(ctx, commit)
}

// make takes the release from the history, and builds it. Another process may do the same.
func (r Release) make(ctx context.Context, commit string) error {
	if err := os.MkdirAll(filepath.Dir(r.dir), 0o755); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(filepath.Dir(r.dir), ".new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	archive := filepath.Join(dir, ".tar")
	for _, command := range [][]string{
		{"git", "-C", checkout.Path(), "archive", "--output", archive, commit},
		{"tar", "--extract", "--file", archive},
		{"env", "VERSION=" + r.version(commit), filepath.Join(dir, "tools", "build"), filepath.Join(dir, "bin")},
	} {
		if _, err := output(ctx, dir, command...); err != nil {
			return fmt.Errorf("previous release %s: %w", r.Revision, err)
		}
	}
	if err := os.Rename(dir, r.dir); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}

// version is that of the programs.
func (r Release) version(commit string) string {
	if v, err := utilversion.ParseSemantic(r.Revision); err == nil {
		return "v" + v.String()
	}
	return "v0.0.0-previous+" + commit[:7]
}

// output runs a command, and returns what it prints.
func output(ctx context.Context, dir string, command ...string) (string, error) {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir = dir
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", command[0], err, bytes.TrimSpace(stderr.Bytes()))
	}
	return string(bytes.TrimSpace(out)), nil
}
