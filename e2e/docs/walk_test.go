package docs_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jobferry/jobferry/e2e/checkout"
	"github.com/jobferry/jobferry/e2e/docs"
	"github.com/jobferry/jobferry/e2e/rig"
)

// pages are read in this order: each goes on where those before it have left hub and workers.
var pages = []string{
	"README.md",
	"docs/README.md", "docs/concepts.md", "docs/faq.md", "docs/install.md", "docs/register.md", "docs/submit.md", "docs/jobs.md", "docs/logs.md", "docs/pods.md", "docs/tools.md", "docs/dashboard.md",
	"docs/spanning.md", "docs/groups.md", "docs/kubectl.md", "docs/compatibility.md", "docs/workers.md", "docs/waiting.md", "docs/rbac.md", "docs/operate.md", "docs/losing-a-worker.md", "docs/fence.md",
	"docs/kueue.md", "docs/from-multikueue.md", "docs/metrics.md", "docs/tracing.md", "docs/performance.md", "docs/chaos.md", "docs/conformance.md",
	"docs/troubleshooting.md", "docs/security.md", "docs/support.md", "docs/release.md", "docs/api.md",
}

// blockTimeout is for one block of commands.
const blockTimeout = 10 * time.Minute

// Every page is among those that are followed, and every page that is followed exists.
func TestAllPagesAreFollowed(t *testing.T) {
	found, err := filepath.Glob(filepath.Join(checkout.Path(), "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	there := []string{"README.md"}
	for _, file := range found {
		there = append(there, "docs/"+filepath.Base(file))
	}
	slices.Sort(there)
	if followed := slices.Sorted(slices.Values(pages)); !slices.Equal(there, followed) {
		t.Errorf("there are %q,\nfollowed are %q", there, followed)
	}
}

// From an empty hub and two empty workers, what the docs say is what happens.
func TestDocs(t *testing.T) {
	s := newStage(t)
	api, err := rig.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	webhook, err := rig.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(api)
	if err != nil {
		t.Fatal(err)
	}
	s.attend(hub, "jobferry-manager", "--metrics-bind-address=0", "--health-probe-bind-address=0",
		"--subresources-bind-address="+api, "--admission-webhook-bind-address="+webhook)
	s.attend(east, "jobferry-worker", "--metrics-bind-address=0", "--health-probe-bind-address=0")
	s.lead(port)
	for _, page := range pages {
		if !t.Run(page, func(t *testing.T) { s.follow(t, page) }) {
			return // those that come after it begin with what it has left
		}
	}
}

func (s *stage) follow(t *testing.T, page string) {
	text, err := os.ReadFile(filepath.Join(checkout.Path(), page))
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := docs.Parse(string(text))
	if err != nil {
		t.Fatalf("%s: %v", page, err)
	}
	for _, block := range blocks {
		if !s.check(t, page, block) {
			return
		}
	}
}

// check runs a block, or says who does.
func (s *stage) check(t *testing.T, page string, block docs.Block) bool {
	switch {
	case block.By != "":
		if _, err := os.Stat(filepath.Join(checkout.Path(), block.By)); err != nil {
			t.Errorf("%s:%d: who tests it: %v", page, block.Line, err)
		}
	case block.Lang == "sh":
		return s.runs(t, page, block)
	case block.Lang == "yaml" && strings.Contains(block.Text, "apiVersion:"):
		ctx, cancel := context.WithTimeout(t.Context(), blockTimeout)
		defer cancel()
		if shown, err := s.bash(ctx, "kubectl apply --dry-run=server -f -", block.Text); err != nil {
			t.Errorf("%s:%d: %v: %s", page, block.Line, err, shown)
		}
	}
	return !t.Failed()
}

func (s *stage) runs(t *testing.T, page string, block docs.Block) bool {
	ctx, cancel := context.WithTimeout(t.Context(), blockTimeout)
	defer cancel()
	began := time.Now()
	shown, err := s.bash(ctx, block.Text, "")
	t.Logf("%s:%d: %.1fs", page, block.Line, time.Since(began).Seconds())
	switch {
	case block.Fails() && err == nil:
		t.Errorf("%s:%d: it should fail:\n%s\nbut prints\n%s", page, block.Line, block.Text, shown)
	case !block.Fails() && err != nil:
		t.Errorf("%s:%d: %v:\n%s\nprints\n%s", page, block.Line, err, block.Text, shown)
	case block.Prints != nil && !shown.shows(*block.Prints):
		t.Errorf("%s:%d:\n%s\nshould print\n%s\nbut prints\n%s", page, block.Line, block.Text, *block.Prints, shown)
	}
	return !t.Failed()
}
