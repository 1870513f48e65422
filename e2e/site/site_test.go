package site

import (
	"html"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jobferry/jobferry/e2e/checkout"
	"github.com/jobferry/jobferry/e2e/dashboard/browser"
)

// base is the path below which the site is, as on GitHub's pages.
const base = "/jobferry/"

// build builds the site, and returns its folder.
func build(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "go", "tool", "-modfile="+checkout.Path("tools", "hugo", "go.mod"), "hugo",
		"--source", "tools/site", "--destination", dir, "--panicOnWarning", "--noBuildLock")
	cmd.Dir = checkout.Path()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return dir
}

func TestSite(t *testing.T) {
	dir := build(t)
	t.Run("pages", func(t *testing.T) { hasAllPages(t, dir) })
	t.Run("links", func(t *testing.T) { hasNoDeadLink(t, dir) })
	t.Run("browser", func(t *testing.T) { works(t, dir) })
}

// hasAllPages checks that each page of docs is one of the site.
func hasAllPages(t *testing.T, dir string) {
	for _, file := range files(t, checkout.Path("docs"), ".md") {
		page := strings.TrimSuffix(file, ".md") + "/index.html"
		if file == "README.md" {
			page = "index.html"
		}
		if _, err := os.Stat(filepath.Join(dir, page)); err != nil {
			t.Errorf("docs/%s: %v", file, err)
		}
	}
}

var (
	links = regexp.MustCompile(`(?:href|src)="?([^"\s>]+)`)
	ids   = regexp.MustCompile(`\bid="?([^"\s>]+)`)
)

// hasNoDeadLink checks that links within the site lead to a file of it, and to a heading there; and
// that links to the repository lead to its files.
func hasNoDeadLink(t *testing.T, dir string) {
	pages := map[string]string{}
	for _, file := range files(t, dir, ".html") {
		pages[file] = read(t, filepath.Join(dir, file))
	}
	for file, text := range pages {
		for _, found := range links.FindAllStringSubmatch(text, -1) {
			link, err := url.Parse(html.UnescapeString(found[1]))
			if err != nil {
				t.Errorf("%s: %v", file, err)
				continue
			}
			if problem := dead(dir, file, link, pages); problem != "" {
				t.Errorf("%s links to %s: %s", file, link, problem)
			}
		}
	}
}

// dead says why a link leads nowhere.
func dead(dir, file string, link *url.URL, pages map[string]string) string {
	if source, ours := strings.CutPrefix(link.String(), "https://github.com/jobferry/jobferry/blob/main/"); ours {
		source, _, _ = strings.Cut(source, "#")
		if _, err := os.Stat(checkout.Path(source)); err != nil {
			return "the repository has no such file"
		}
	}
	target := file
	switch {
	case link.Scheme != "":
		return ""
	case link.Path != "":
		within, inSite := strings.CutPrefix(link.Path, base)
		if !inSite {
			return "it's outside of the site"
		}
		target = within
		if within == "" || strings.HasSuffix(within, "/") {
			target = path.Join(within, "index.html")
		}
	}
	if _, err := os.Stat(filepath.Join(dir, target)); err != nil {
		return "there is no such page"
	}
	if link.Fragment == "" {
		return ""
	}
	for _, id := range ids.FindAllStringSubmatch(pages[target], -1) {
		if html.UnescapeString(id[1]) == link.Fragment {
			return ""
		}
	}
	return "the page has no such heading"
}

// works looks at the site in a browser: the search finds a page by a word of it, and axe-core finds
// nothing on any page.
func works(t *testing.T, dir string) {
	server := httptest.NewServer(http.StripPrefix(base, http.FileServerFS(os.DirFS(dir))))
	t.Cleanup(server.Close)
	b := browser.Open(t)
	b.Visit(server.URL + base)
	b.Script(`(() => { const q = document.getElementById("q"); q.focus(); q.value = "ignoreDifferences"; q.dispatchEvent(new Event("input")); return true })()`, new(bool))
	b.Until("#found", "Register workers by GitOps")
	b.Accessible()
	for _, page := range files(t, dir, ".html") {
		b.Visit(server.URL + base + strings.TrimSuffix(page, "index.html"))
		b.Until("main", "")
		b.Accessible()
	}
	b.Window(390, 844)
	b.Dark(true)
	b.Visit(server.URL + base + "how-to/install/")
	b.Is("document.documentElement.scrollWidth <= window.innerWidth")
	b.Accessible()
}

// files are those in a folder and those below it, with an ending.
func files(t *testing.T, dir, ending string) []string {
	t.Helper()
	var all []string
	err := fs.WalkDir(os.DirFS(dir), ".", func(file string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(file, ending) {
			all = append(all, file)
		}
		return err
	})
	if err != nil || len(all) == 0 {
		t.Fatalf("%s has no files %s: %v", dir, ending, err)
	}
	return all
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
