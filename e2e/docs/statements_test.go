package docs_test

import (
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jobferry/jobferry/e2e/checkout"
	"github.com/jobferry/jobferry/e2e/rig/binaries"
)

// texts are the pages that people read, by their paths in the checkout.
func texts(t *testing.T) []string {
	t.Helper()
	return append([]string{"README.md", "CONTRIBUTING.md", "e2e/README.md"}, pagesOfDocs(t)...)
}

// pagesOfDocs are the pages in docs and its folders.
func pagesOfDocs(t *testing.T) []string {
	t.Helper()
	var all []string
	err := fs.WalkDir(os.DirFS(checkout.Path()), "docs", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".md") {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func read(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(checkout.Path(page))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// oneLine is a text without its line breaks.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// Only docs/reference/support.md says which versions of Kubernetes are supported, and which older
// ones may work: those of the rig, and that of the charts.
func TestVersionsAreStatedOnce(t *testing.T) {
	const page = "docs/reference/support.md"
	support := oneLine(read(t, page))
	_, promise, _ := strings.Cut(support, "**Kubernetes ")
	promise, _, _ = strings.Cut(promise, "**")
	var supported []binaries.Release
	for _, minor := range regexp.MustCompile(`\b1\.\d\d\b`).FindAllString(promise, -1) {
		supported = append(supported, binaries.Release(minor))
	}
	slices.Reverse(supported)
	if !slices.Equal(supported, binaries.Releases()) {
		t.Errorf("%s supports %v, tested are %v", page, supported, binaries.Releases())
	}
	for _, chart := range []string{"jobferry", "jobferry-worker"} {
		oldest := regexp.MustCompile(`kubeVersion: ">=(1\.\d\d)\.0-0"`).FindStringSubmatch(read(t, "charts/"+chart+"/Chart.yaml"))
		if oldest == nil || !strings.Contains(support, "The charts install in Kubernetes "+oldest[1]+" or later") {
			t.Errorf("chart %s is for %q, which %s doesn't say", chart, oldest, page)
		}
	}
	versions := regexp.MustCompile(`[^.\d](1\.3[0-2] (or|and) later|1\.3[0-3] to 1\.\d\d)`)
	for _, other := range texts(t) {
		if other == page || other == "docs/reference/compatibility.md" || other == "e2e/README.md" {
			continue
		}
		text := strings.ReplaceAll(oneLine(read(t, other)), "its release 1.30 and later", "") // cluster-autoscaler's
		if found := versions.FindString(text); found != "" {
			t.Errorf("%s says %q: link to %s#kubernetes", other, found, page)
		}
	}
}

// Workers are registered by kubectl jobferry register. One page has the way by hand.
func TestRegistrationIsStatedOnce(t *testing.T) {
	for _, page := range texts(t) {
		byHand := strings.Contains(read(t, page), "label secret ") && strings.Contains(read(t, page), "jobferry.dev/worker-cluster=true")
		if byHand != (page == "docs/how-to/register.md") {
			t.Errorf("%s has the registration by hand: %t", page, byHand)
		}
	}
	for _, page := range []string{"README.md", "docs/how-to/register.md", "docs/reference/workers.md"} {
		if !regexp.MustCompile("`kubectl jobferry register`(\\]\\([^)]*\\))? makes a cluster a worker").MatchString(oneLine(read(t, page))) {
			t.Errorf("%s doesn't say that kubectl jobferry register makes a cluster a worker", page)
		}
	}
}

// The first run fetches the programs of Kubernetes, or builds them. Whoever tells of one, tells of
// both.
func TestFirstRunIsStatedAlike(t *testing.T) {
	for _, page := range []string{"README.md", "CONTRIBUTING.md"} {
		for paragraph := range strings.SplitSeq(read(t, page), "\n\n") {
			text := oneLine(paragraph)
			if strings.Contains(text, "first run") && (!strings.Contains(text, "fetch") || !strings.Contains(text, "build") || !strings.Contains(text, "dl.k8s.io")) {
				t.Errorf("%s says of the first run: %s", page, text)
			}
		}
		if strings.Contains(oneLine(read(t, page)), "first `make test` builds") {
			t.Errorf("%s says that the first run builds", page)
		}
	}
}

// The Pod that a log or a command is for, if the user names none, is the same in the reference of
// the API and in that of the plugin.
func TestDefaultPodIsStatedAlike(t *testing.T) {
	const (
		ofLog     = "the newest Pod that has started"
		ofCommand = "the newest running Pod"
	)
	row := "`log`: " + ofLog + ". `exec`, `attach`, `portforward`: " + ofCommand + " |"
	if !strings.Contains(read(t, "docs/how-to/logs.md"), row) {
		t.Errorf("docs/how-to/logs.md doesn't have: %s", row)
	}
	plugin := read(t, "docs/reference/kubectl.md")
	for verb, want := range map[string]string{"logs": ofLog, "attach": ofCommand, "cp": ofCommand, "exec": ofCommand, "port-forward": ofCommand} {
		_, section, _ := strings.Cut(plugin, "\n## "+verb+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		if !strings.Contains(section, want) {
			t.Errorf("docs/reference/kubectl.md says nothing of %s for %s", want, verb)
		}
	}
}
