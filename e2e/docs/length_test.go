package docs_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// mostWords is how many the docs have at most, so that somebody can read them.
const mostWords = 45_000

var (
	generatedPages = []string{"docs/reference/api.md", "docs/reference/compatibility.md", "docs/reference/kubectl.md", "docs/reference/metrics.md"}
	generatedParts = regexp.MustCompile(`(?ms)^<!-- (?:table:|workeraccess\.).*?^<!-- end -->`)
)

// The docs stay short: what is added is paid for by cutting. Generated text doesn't count.
func TestDocsAreShort(t *testing.T) {
	words := 0
	for _, page := range pagesOfDocs(t) {
		if slices.Contains(generatedPages, page) {
			continue
		}
		text := generatedParts.ReplaceAllString(read(t, page), "")
		for word := range strings.FieldsSeq(text) {
			if strings.ContainsFunc(word, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
				words++
			}
		}
	}
	t.Logf("%d words", words)
	if words > mostWords {
		t.Errorf("docs has %d words, want at most %d", words, mostWords)
	}
}
