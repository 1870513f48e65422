package docs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jobferry/jobferry/e2e/checkout"
	"github.com/jobferry/jobferry/e2e/docs"
)

const linked = "# A page: `x`, [y](z.md)!\n\n## Twice\n\nSee [a](b.md#c-d), [e](#twice-1) and [f](https://example.org/g.md).\n\n" +
	"```sh\n# no heading [h](i.md)\n```\n\n## Twice\n"

func TestParseLinks(t *testing.T) {
	want := []docs.Link{{Line: 1, File: "z.md"}, {Line: 5, File: "b.md", Anchor: "c-d"}, {Line: 5, Anchor: "twice-1"}}
	if diff := cmp.Diff(want, docs.Links(linked)); diff != "" {
		t.Error(diff)
	}
	anchors := map[string]bool{"a-page-x-y": true, "twice": true, "twice-1": true}
	if diff := cmp.Diff(anchors, docs.Anchors(linked)); diff != "" {
		t.Error(diff)
	}
}

// Links between pages lead somewhere: to a file that exists, and to one of its headings.
func TestLinks(t *testing.T) {
	for _, page := range append(texts(t), "CHANGELOG.md", "SECURITY.md", "e2e/hostile/README.md", ".github/CODE_OF_CONDUCT.md") {
		for _, link := range docs.Links(read(t, page)) {
			target := page
			if link.File != "" {
				target = filepath.Join(filepath.Dir(page), link.File)
			}
			switch _, err := os.Stat(checkout.Path(target)); {
			case err != nil:
				t.Errorf("%s:%d: there is no %s", page, link.Line, target)
			case link.Anchor != "" && strings.HasSuffix(target, ".md") && !docs.Anchors(read(t, target))[link.Anchor]:
				t.Errorf("%s:%d: %s has no heading #%s", page, link.Line, target, link.Anchor)
			}
		}
	}
}
