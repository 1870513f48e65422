package binaries

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParseRelease(t *testing.T) {
	for in, want := range map[string]Release{"": Current, "1.36": Current, "v1.34": Oldest, "1.33": "1.33", "1.20": "", "x": ""} {
		got, err := ParseRelease(in)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("ParseRelease(%q) = %q, %v; want %q", in, got, err, want)
		}
	}
}

func TestEveryReleaseHasItsModules(t *testing.T) {
	dir, err := versionsDir()
	if err != nil {
		t.Fatal(err)
	}
	for _, release := range Releases() {
		for _, p := range append(release.programs(), tools...) {
			m, err := loadModule(dir, p.module, "go1")
			if err != nil {
				t.Errorf("%s: %v", p.name, err)
				continue
			}
			goMod, err := os.ReadFile(filepath.Join(m.dir, "go.mod"))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(goMod), p.pkg+"\n") {
				t.Errorf("%s is no tool of module %s", p.pkg, p.module)
			}
			if strings.HasPrefix(p.module, "v") && !strings.HasPrefix(m.kube, p.module+".") {
				t.Errorf("module %s pins Kubernetes %s", p.module, m.kube)
			}
		}
	}
}

func TestDigestFollowsWhatDecidesTheResult(t *testing.T) {
	dir := t.TempDir()
	write := func(file, content string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(dir, "m"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "m", file), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var digests []string
	add := func(goVersion string) {
		t.Helper()
		m, err := loadModule(dir, "m", goVersion)
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, m.digest)
	}
	write("go.mod", "module m\n\ngo 1.26\n")
	write("go.sum", "")
	add("go1.26.0")
	add("go1.26.1")
	write("go.sum", "changed")
	add("go1.26.0")
	write("go.mod", "module m\n\ngo 1.26\n\nrequire k8s.io/kubernetes v1.36.3\n")
	add("go1.26.0")
	slices.Sort(digests)
	if n := len(slices.Compact(digests)); n != 4 {
		t.Errorf("%d different digests, want 4", n)
	}
}

func TestLinkerFlagsNameTheVersion(t *testing.T) {
	flags := linkerFlags("v1.36.3")
	for _, want := range []string{".gitVersion=v1.36.3", ".gitMajor=1", ".gitMinor=36"} {
		if !strings.Contains(flags, want) {
			t.Errorf("%q has no %s", flags, want)
		}
	}
	if strings.Contains(linkerFlags(""), "-X") {
		t.Error("a program that isn't Kubernetes' gets its version")
	}
}

func TestLockIsHeldByOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	impatient, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := lock(impatient, path); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the second holder got %v, want a time-out", err)
	}
	unlock()
	again, err := lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	again()
}

func TestLinesSayWhatTakesLong(t *testing.T) {
	var out strings.Builder
	report := Lines(&out)
	for _, p := range []Progress{
		{"etcd", 1, 6, Waiting, 0, ""},
		{"etcd", 1, 6, Building, 0, ""},
		{"etcd", 1, 6, Building, 1 * time.Second, ""},
		{"etcd", 1, 6, Building, 31 * time.Second, ""},
		{"etcd", 1, 6, Built, 40 * time.Second, ""},
		{"kwok", 2, 6, Waiting, 2 * time.Second, ""},
		{"kubectl", 3, 6, Fetched, 5 * time.Second, "from a server"},
	} {
		report(p)
	}
	want := `building etcd (1 of 6, 0s)
building etcd (1 of 6, 31s)
built etcd (1 of 6, 40s)
waiting for another build of kwok (2 of 6, 2s)
fetched kubectl (3 of 6, 5s): from a server
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

// On a new machine, Go's cache has no module.
func TestModuleDirWithAnEmptyCache(t *testing.T) {
	t.Setenv("GOMODCACHE", t.TempDir())
	t.Cleanup(func() { // its folders can't be written to
		if out, err := exec.Command("go", "clean", "-modcache").CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	dir, err := ModuleDir(t.Context(), "v1.36", "github.com/blang/semver/v4") // a small one
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		t.Error(err)
	}
	if _, err := ModuleDir(t.Context(), "v1.36", "example.org/none"); err == nil || !strings.Contains(err.Error(), "example.org/none") {
		t.Errorf("a module that isn't required: %v", err)
	}
}
