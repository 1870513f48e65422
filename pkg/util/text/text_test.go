package text

import (
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/jobferry/jobferry/pkg/util/costtest"
)

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"":                       "",
		"0/1 nodes available":    "0/1 nodes available",
		"  two\n\tlines\r\n":     "two lines",
		"\x1b[31mred\x1b[0m\a":   "[31mred [0m",
		"ab\u202Etxt.exe\u200B!": "ab txt.exe !",
		"no\x00thing":            "no thing",
		"\xff\xfebytes":          "��bytes",
		"Grüße, 世界":              "Grüße, 世界",
		"twenty bytes, exactly":  "twenty bytes, exa...",
		"äääääääääääääääää":      "ääääääää...",
	} {
		if got := Clean(in, 20); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
	if got := Clean(strings.Repeat("x", 1<<20), MaxMessage); len(got) != MaxMessage {
		t.Errorf("%d bytes are left", len(got))
	}
}

func TestReason(t *testing.T) {
	for in, want := range map[string]string{
		"":                         "",
		"CompletionsReached":       "CompletionsReached",
		"Pod Failure\x1b[2JPolicy": "PodFailure2JPolicy",
		"1st":                      "st",
		"a:":                       "a",
		"--":                       "",
	} {
		if got := Reason(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

var reason = regexp.MustCompile(`^([A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?)?$`)

func FuzzClean(f *testing.F) {
	f.Add("plain", 10)
	f.Add("\x1b]0;title\a\u202e\xff", 5)
	f.Fuzz(func(t *testing.T, in string, limit int) {
		limit = min(max(limit, 0), 2*MaxMessage)
		got := Clean(in, limit)
		if len(got) > limit || !utf8.ValidString(got) || Clean(got, limit) != got {
			t.Errorf("%q with the limit %d becomes %q, then %q", in, limit, got, Clean(got, limit))
		}
		if i := strings.IndexFunc(got, func(r rune) bool { return !unicode.IsGraphic(r) || r != ' ' && unicode.IsSpace(r) }); i >= 0 {
			t.Errorf("%q becomes %q", in, got)
		}
		if got := Reason(in); !reason.MatchString(got) || len(got) > MaxReason {
			t.Errorf("the reason %q becomes %q", in, got)
		}
	})
}

func FuzzCost(f *testing.F) {
	f.Add("", "\x1b]0;", "")
	f.Add("", "\u202e", "x")
	f.Add("", "\xff", "")
	costtest.Check(f, 64<<10, 1, func(text string) {
		_, _ = Clean(text, MaxMessage), Reason(text)
	})
}
