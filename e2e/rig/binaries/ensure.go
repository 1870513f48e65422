package binaries

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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

// rigDir is the folder of the cache that is the rig's.
func rigDir() (string, error) {
	cache, err := CacheDir()
	return filepath.Join(cache, "rig"), err
}

// Clean removes all that Ensure and Tool keep, and returns the folder that it was in.
func Clean() (string, error) {
	dir, err := rigDir()
	if err != nil {
		return "", err
	}
	return dir, os.RemoveAll(dir)
}

// Ensure returns the programs of a release. Those that the cache lacks are fetched or built. It may
// be called by several processes at once: one builds, the others wait for it. report may be nil.
//
// Errors: no go command, no checkout, a failed build (with the compiler's output), a cancelled
// context. A failed download is none: the program is built then.
func Ensure(ctx context.Context, release Release, report func(Progress)) (Paths, error) {
	return ensure(ctx, release.programs(), report)
}

// Tool returns a program that belongs to no release, such as Helm or etcd, and builds it if the
// cache lacks it, as Ensure does.
func Tool(ctx context.Context, name string, report func(Progress)) (string, error) {
	for _, p := range unreleased() {
		if p.name == name {
			paths, err := ensure(ctx, []program{p}, report)
			return paths[name], err
		}
	}
	return "", fmt.Errorf("the rig has no tool %q", name)
}

// ModuleDir is the folder with the source of a Go module that one of the folders under e2e/versions
// requires: manifests that belong to a program are taken from there, at the version that was built.
// The module is fetched if it isn't in Go's cache.
func ModuleDir(ctx context.Context, version, path string) (string, error) {
	versions, err := versionsDir()
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", path)
	cmd.Dir = filepath.Join(versions, version)
	cmd.Env = append(os.Environ(), buildEnv...)
	out, err := cmd.Output()
	var module struct{ Dir, Error string }
	if invalid := json.Unmarshal(out, &module); invalid == nil && module.Error != "" {
		err = errors.New(module.Error)
	} else if err == nil {
		err = invalid
	}
	if err != nil {
		return "", fmt.Errorf("folder of module %s: %w", path, err)
	}
	return module.Dir, nil
}

func ensure(ctx context.Context, programs []program, report func(Progress)) (Paths, error) {
	if report == nil {
		report = func(Progress) {}
	}
	cache, err := rigDir()
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
	server, err := chosenServer()
	if err != nil {
		return nil, err
	}
	paths := Paths{}
	for i, p := range programs {
		m, err := loadModule(versions, p.module, goVersion)
		if err != nil {
			return nil, err
		}
		w := work{p, m, cache, server, Progress{Program: p.name, Number: i + 1, Of: len(programs)}}
		if paths[p.name], err = w.ensure(ctx, report); err != nil {
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
