package binaries

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/mod/modfile"

	"github.com/jobferry/jobferry/e2e/checkout"
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
	fmt.Fprintln(h, goVersion, runtime.GOOS, runtime.GOARCH, BuildFlags(m.kube), buildEnv)
	h.Write(goMod)
	h.Write(goSum)
	m.digest = short(h)
	h.Reset()
	fmt.Fprintln(h, "released", m.kube, runtime.GOOS, runtime.GOARCH)
	m.releaseDigest = short(h)
	return m, nil
}

func short(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil))[:12] }

// versionsDir is e2e/versions.
func versionsDir() (string, error) {
	root, err := checkout.Root()
	return filepath.Join(root, "e2e", "versions"), err
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

// BuildFlags are the flags of every build of Go programs, with Kubernetes of a version or without
// it: "". The Makefile has the same, so that packages are
// compiled once for both.
func BuildFlags(kube string) []string {
	return []string{"-trimpath", "-gcflags=all=-dwarf=false", "-ldflags", linkerFlags(kube)}
}

// buildEnv makes the result independent of the caller's workspace and flags.
var buildEnv = []string{"CGO_ENABLED=0", "GOFLAGS=-mod=readonly -buildvcs=false", "GOWORK=off"}

// compileEnv is the environment of every "go build". With a larger heap, the compiler takes a fifth
// less time.
func compileEnv() []string { return append(append(os.Environ(), "GOGC=400"), buildEnv...) }
