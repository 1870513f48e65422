package binaries

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// work is what it takes to have one program in the cache.
type work struct {
	program
	module   module
	cache    string
	server   *server // nil: everything is built from source
	progress Progress
}

// built and fetched are where the program is, depending on how it came there.
func (w work) built() string   { return w.in(w.module.digest) }
func (w work) fetched() string { return w.in(w.module.releaseDigest) }

func (w work) in(digest string) string {
	return filepath.Join(w.cache, w.module.name+"-"+digest, w.name)
}

// fetches says whether the program may come from the server.
func (w work) fetches() bool { return w.server != nil && w.released }

// find returns the program if it is in the cache.
func (w work) find() string {
	if exists(w.built()) {
		return w.built()
	}
	if w.fetches() && exists(w.fetched()) {
		return w.fetched()
	}
	return ""
}

func (w work) ensure(ctx context.Context, report func(Progress)) (string, error) {
	if path := w.find(); path != "" {
		return path, nil
	}
	for _, path := range []string{w.built(), w.fetched()} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return "", err
		}
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ticker := startTicker(ctx, w.progress, report)
	defer ticker.finish()

	ticker.tell(Waiting, "")
	unlock, err := lock(ctx, filepath.Join(w.cache, w.module.name+".lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	if path := w.find(); path != "" {
		return path, nil // another process has made it meanwhile
	}
	return w.make(ctx, ticker)
}

// make fetches the program, or else builds it.
func (w work) make(ctx context.Context, ticker *ticker) (string, error) {
	refusal := ""
	if w.fetches() && w.server.usable() {
		ticker.tell(Fetching, "")
		err := w.fetch(ctx)
		if err == nil {
			ticker.tell(Fetched, "from "+w.server.url+", its checksum verified")
			return w.fetched(), nil
		}
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		refusal = fmt.Sprintf("from source, since %s can't be used: %v", w.server.url, err)
	}
	ticker.tell(Building, refusal)
	if err := w.compile(ctx); err != nil {
		return "", err
	}
	ticker.tell(Built, "")
	return w.built(), nil
}

func (w work) fetch(ctx context.Context) error {
	temporary := w.fetched() + ".new"
	defer os.Remove(temporary)
	if err := w.server.fetch(ctx, w.module.kube, w.name, temporary); err != nil {
		return err
	}
	return os.Rename(temporary, w.fetched())
}

func (w work) compile(ctx context.Context) error {
	temporary := w.built() + ".new"
	defer os.Remove(temporary)
	if err := build(ctx, w.module.dir, w.pkg, temporary, w.module.kube); err != nil {
		return err
	}
	return os.Rename(temporary, w.built())
}

// build builds a package of a module under e2e/versions, with more flags than all builds have.
func build(ctx context.Context, dir, pkg, target, kube string, flags ...string) error {
	args := slices.Concat([]string{"build", "-o", target}, BuildFlags(kube), flags, []string{pkg})
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = compileEnv()
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s: %w\n%s", pkg, err, tail(string(out), 20))
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func tail(s string, lines int) string {
	all := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
