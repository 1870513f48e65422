package binaries

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/mod/modfile"
)

const kubernetesModule = "k8s.io/kubernetes"

// module is a folder under e2e/versions.
type module struct {
	name   string
	dir    string
	kube   string // the version of k8s.io/kubernetes it pins, if any
	digest string // of everything that decides what is built from it
	// releaseDigest is of everything that decides what Kubernetes' release server has for it.
	releaseDigest string
}

func loadModule(versionsDir, name string, goVersion string) (module, error) {
	m := module{name: name, dir: filepath.Join(versionsDir, name)}
	goMod, err := os.ReadFile(filepath.Join(m.dir, "go.mod"))
	if err != nil {
		return module{}, err
	}
	goSum, err := os.ReadFile(filepath.Join(m.dir, "go.sum"))
	if err != nil {
		return module{}, err
	}
	parsed, err := modfile.ParseLax("go.mod", goMod, nil)
	if err != nil {
		return module{}, err
	}
	for _, r := range parsed.Require {
		if r.Mod.Path == kubernetesModule {
			m.kube = r.Mod.Version
		}
	}
	h := sha256.New()
	fmt.Fprintln(h, goVersion, runtime.GOOS, runtime.GOARCH, buildFlags(m.kube), buildEnv)
	h.Write(goMod)
	h.Write(goSum)
	m.digest = short(h)
	h.Reset()
	fmt.Fprintln(h, "released", m.kube, runtime.GOOS, runtime.GOARCH)
	m.releaseDigest = short(h)
	return m, nil
}

func short(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil))[:12] }

// versionsDir finds e2e/versions: beside the source of this package, or, where that path was
// trimmed from the binary, in the checkout around the working directory.
func versionsDir() (string, error) {
	if _, file, _, ok := runtime.Caller(0); ok && filepath.IsAbs(file) {
		dir := filepath.Join(filepath.Dir(file), "..", "..", "versions")
		if isDir(dir) {
			return filepath.Clean(dir), nil
		}
	}
	wd, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := wd; ; dir = filepath.Dir(dir) {
		for _, candidate := range []string{filepath.Join(dir, "e2e", "versions"), filepath.Join(dir, "versions")} {
			if isDir(filepath.Join(candidate, "v"+string(Current))) {
				return candidate, nil
			}
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("no checkout with e2e/versions around " + wd)
		}
	}
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// linkerFlags tells the Kubernetes programs their version: built from the module they would report
// "v0.0.0-master+$Format", which clients that read the server's version refuse.
func linkerFlags(kube string) string {
	flags := []string{"-s", "-w"}
	if kube == "" {
		return strings.Join(flags, " ")
	}
	parts := strings.SplitN(strings.TrimPrefix(kube, "v"), ".", 3)
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		for _, v := range [][2]string{
			{"gitVersion", kube}, {"gitMajor", parts[0]}, {"gitMinor", parts[1]}, {"gitTreeState", "clean"},
		} {
			flags = append(flags, "-X", pkg+"."+v[0]+"="+v[1])
		}
	}
	return strings.Join(flags, " ")
}

// buildFlags are the flags of every "go build".
func buildFlags(kube string) []string {
	return []string{"-trimpath", "-ldflags", linkerFlags(kube)}
}

// buildEnv makes the result independent of the caller's workspace and flags.
var buildEnv = []string{"CGO_ENABLED=0", "GOFLAGS=-mod=readonly -buildvcs=false", "GOWORK=off"}
