package product

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	utilversion "k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/yaml"

	"github.com/jobferry/jobferry/e2e/checkout"
)

var programs = []string{"jobferry-manager", "jobferry-worker", "kubectl-jobferry"}

// Each program starts and says a valid version, however it was built in a clone without tags.
func TestProgramsStart(t *testing.T) {
	clone := filepath.Join(t.TempDir(), "jobferry")
	run(t, checkout.Path(), nil, "git", "clone", "--quiet", "--no-tags", ".", clone)
	commit := strings.TrimSpace(run(t, clone, nil, "git", "rev-parse", "HEAD"))[:7]
	flags := os.Getenv("GOFLAGS") // with others, all would be compiled again
	for _, build := range []struct {
		name    string
		env     []string
		command []string
		want    string // how the version begins
		builds  []string
	}{
		{"make build", []string{"VERSION="}, []string{"make", "build"}, "v0.0.0-dev+" + commit, programs},
		{"make build VERSION=1.2.3", nil, []string{"make", "build", "VERSION=1.2.3"}, "v1.2.3", programs},
		{"go build", []string{"GOFLAGS=" + flags + " -buildvcs=true"}, []string{"go", "build", "-o", "bin/", "./cmd/..."}, "v0.0.0-2", programs},
		{"go install", []string{"GOFLAGS=" + flags + " -buildvcs=false", "GOBIN=" + filepath.Join(clone, "bin")},
			[]string{"go", "install", "./cmd/kubectl-jobferry"}, "v0.0.0-dev", []string{"kubectl-jobferry"}},
	} {
		t.Run(build.name, func(t *testing.T) {
			if err := os.RemoveAll(filepath.Join(clone, "bin")); err != nil {
				t.Fatal(err)
			}
			run(t, clone, build.env, build.command...)
			versionsOf(t, filepath.Join(clone, "bin"), build.want, build.builds...)
		})
	}
}

// versionsOf checks that some programs in a folder say the same version.
func versionsOf(t *testing.T, bin, want string, programs ...string) {
	t.Helper()
	var all []string
	for _, program := range programs {
		version := strings.TrimSuffix(run(t, bin, nil, filepath.Join(bin, program), "--version"), "\n")
		if _, err := utilversion.ParseSemantic(version); err != nil || !strings.HasPrefix(version, "v") {
			t.Errorf("%s has version %q: %v", program, version, err)
		}
		if all = append(all, version); version != all[0] || !strings.HasPrefix(version, want) {
			t.Errorf("%s has version %q, want %q…, as %s", program, version, want, programs[0])
		}
	}
}

// What is no version is refused, in one line, and nothing is built.
func TestBuildRefusesABadVersion(t *testing.T) {
	for _, version := range []string{"foo", "v1.2", "01.2.3", "1.2.3-", "v1.2.3 -X a=b"} {
		dir := t.TempDir()
		cmd := exec.Command(checkout.Path("tools", "build"), dir)
		cmd.Env = append(os.Environ(), "VERSION="+version)
		out, err := cmd.CombinedOutput()
		if err == nil || strings.Count(string(out), "\n") != 1 || !strings.Contains(string(out), "such as v1.2.3") {
			t.Errorf("VERSION=%s: %v, %q", version, err, out)
		}
		if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
			t.Errorf("VERSION=%s: built %v (%v)", version, files, err)
		}
	}
}

func run(t *testing.T, dir string, env []string, command ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, errs.String())
	}
	return string(out)
}

// The charts run the images that are built with their version.
func TestChartsAgreeWithTheVersion(t *testing.T) {
	var versions []string
	for _, name := range []string{"jobferry", "jobferry-worker"} {
		text, err := os.ReadFile(checkout.Path("charts", name, "Chart.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		var chart struct{ Version, AppVersion string }
		if err := yaml.Unmarshal(text, &chart); err != nil {
			t.Fatal(err)
		}
		if _, err := utilversion.ParseSemantic(chart.AppVersion); err != nil || chart.AppVersion != "v"+chart.Version {
			t.Errorf("chart %s: version %q, appVersion %q: %v", name, chart.Version, chart.AppVersion, err)
		}
		versions = append(versions, chart.AppVersion)
	}
	page, err := os.ReadFile(checkout.Path("docs", "how-to", "install.md"))
	if err != nil {
		t.Fatal(err)
	}
	if build := "--build-arg VERSION=" + versions[0] + " "; versions[0] != versions[1] || !strings.Contains(string(page), build) {
		t.Errorf("the charts' appVersions are %v; docs/how-to/install.md builds with %q", versions, build)
	}
}

var (
	target = regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):.*## `)
	// unfetched is a command that tells of a module's folder, and fetches nothing into it.
	unfetched = regexp.MustCompile(`list"?,? "?-m\b.*\.Dir`)
)

// Each target of the Makefile works on a new machine: what it runs, and what the programs run that
// it builds, fetches the modules whose files it reads.
func TestTargetsFetchWhatTheyRead(t *testing.T) {
	makefile, err := os.ReadFile(checkout.Path("Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	targets := target.FindAllStringSubmatch(string(makefile), -1)
	if len(targets) < 20 {
		t.Fatalf("only %d targets are found", len(targets))
	}
	for _, name := range targets {
		commands := run(t, checkout.Path(), []string{"MAKEFLAGS=", "VERSION=v1.2.3"}, "make", "--no-print-directory", "--dry-run", name[1])
		if found := unfetched.FindString(commands); found != "" {
			t.Errorf("make %s runs %q", name[1], found)
		}
	}
	for _, file := range strings.Fields(run(t, checkout.Path(), nil, "git", "ls-files", "*.go", "tools", ".ci")) {
		text, err := os.ReadFile(checkout.Path(file))
		if err != nil {
			t.Fatal(err)
		}
		if found := unfetched.Find(text); found != nil {
			t.Errorf("%s runs %q", file, found)
		}
	}
}
