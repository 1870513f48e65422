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
	"README.md", "docs/README.md", "docs/tutorials/first-job.md", "docs/explanation/concepts.md",
	"docs/explanation/faq.md", "docs/how-to/install.md", "docs/how-to/register.md", "docs/how-to/gitops.md",
	"docs/tutorials/first-day.md", "docs/tutorials/lose-a-worker.md", "docs/how-to/submit.md",
	"docs/reference/jobs.md", "docs/how-to/logs.md", "docs/how-to/pods.md", "docs/how-to/tools.md",
	"docs/how-to/dashboard.md", "docs/how-to/spanning.md", "docs/how-to/groups.md", "docs/reference/kubectl.md",
	"docs/reference/compatibility.md", "docs/reference/workers.md", "docs/explanation/waiting.md",
	"docs/reference/rbac.md", "docs/how-to/tenants.md", "docs/how-to/operate.md",
	"docs/explanation/losing-a-worker.md", "docs/explanation/fence.md", "docs/how-to/kueue.md",
	"docs/how-to/from-multikueue.md", "docs/how-to/from-karmada.md", "docs/reference/metrics.md",
	"docs/how-to/tracing.md", "docs/explanation/performance.md", "docs/explanation/chaos.md",
	"docs/reference/conformance.md", "docs/how-to/troubleshooting.md", "docs/explanation/security.md",
	"docs/reference/support.md", "docs/reference/release.md", "docs/how-to/platforms.md",
	"docs/how-to/air-gapped.md", "docs/how-to/service-mesh.md", "docs/how-to/keep-logs.md",
	"docs/reference/api.md",
}

// blockTimeout is for one block of commands.
const blockTimeout = 10 * time.Minute

// Every page is among those that are followed, and every page that is followed exists.
func TestAllPagesAreFollowed(t *testing.T) {
	there := append([]string{"README.md"}, pagesOfDocs(t)...)
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
