package conformance

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jobferry/jobferry/e2e/checkout"
)

const output = `=== RUN   TestA
    a_test.go:7: --- PASS: not a result
--- PASS: TestA (1.20s)
    --- PASS: TestA/one_and_two (0.40s)
    --- SKIP: TestA/three (0.00s)
--- FAIL: TestB (0.01s)
    --- FAIL: TestB/x (0.01s)
FAIL
`

func TestReadGoTest(t *testing.T) {
	r, err := ReadGoTest(strings.NewReader(output))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(r.Passed, []string{"TestA", "TestA/one_and_two"}) || !slices.Equal(r.Failed, []string{"TestB", "TestB/x"}) || !slices.Equal(r.Skipped, []string{"TestA/three"}) {
		t.Errorf("result %+v", r)
	}
	if line := r.Line(Integration); !strings.HasPrefix(line, "integration: 1 of 2 tests, 1 of 2 subtests passed; ") {
		t.Errorf("line %q", line)
	}
	if err := r.Err(); err == nil || !strings.Contains(err.Error(), "TestB/x") {
		t.Errorf("error %v", err)
	}
}

// A run without tests is no pass.
func TestNothingRan(t *testing.T) {
	if (Result{Skipped: []string{"TestA"}}).Err() == nil {
		t.Error("no error")
	}
	if err := (Result{Passed: []string{"TestA"}}).Err(); err != nil {
		t.Error(err)
	}
}

// The pattern fits the cases, as the testing package matches it: level by level, blanks as
// underscores.
func TestSkipPattern(t *testing.T) {
	got := SkipPattern([]Case{{Name: "TestA"}, {Name: "TestB/a (b); c != d"}})
	if want := `^TestA$|^TestB$/^a_\(b\);_c_!=_d$`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// docs/reference/conformance.md shows each case that is left out, with its reason, and no other.
func TestPageShowsWhatIsLeftOut(t *testing.T) {
	page, err := os.ReadFile(checkout.Path("docs", "reference", "conformance.md"))
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	for part, cases := range LeftOut {
		if !slices.Contains(Parts, part) {
			t.Errorf("no part %q", part)
		}
		for _, c := range cases {
			row := "| " + string(part) + " | `" + c.Name + "` | " + c.Reason + " |\n"
			if !strings.Contains(string(page), row) {
				t.Errorf("docs/reference/conformance.md lacks the row\n%s", row)
			}
			shown++
		}
	}
	rows := regexp.MustCompile("(?m)^\\| [a-z-]+ \\| `").FindAllString(string(page), -1)
	if len(rows) != shown {
		t.Errorf("docs/reference/conformance.md has %d rows of cases that are left out, want %d", len(rows), shown)
	}
}
