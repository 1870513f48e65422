package conformance

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// Result is what became of a part's tests, by name.
type Result struct {
	Passed, Failed []string
	// Skipped are tests that skip themselves.
	Skipped []string
}

// Add adds what became of other tests.
func (r *Result) Add(other Result) {
	r.Passed = append(r.Passed, other.Passed...)
	r.Failed = append(r.Failed, other.Failed...)
	r.Skipped = append(r.Skipped, other.Skipped...)
}

// Total is the number of tests that ran.
func (r Result) Total() int { return len(r.Passed) + len(r.Failed) }

// Err is an error if a test has failed, or none has run.
func (r Result) Err() error {
	if r.Total() == 0 {
		return errors.New("no test ran")
	}
	if len(r.Failed) > 0 {
		return fmt.Errorf("%d of %d failed:\n  %s", len(r.Failed), r.Total(), strings.Join(slices.Sorted(slices.Values(r.Failed)), "\n  "))
	}
	return nil
}

// Only is the part of the result whose tests are, or aren't, subtests.
func (r Result) Only(subtests bool) Result {
	pick := func(names []string) (picked []string) {
		for _, name := range names {
			if strings.Contains(name, "/") == subtests {
				picked = append(picked, name)
			}
		}
		return picked
	}
	return Result{Passed: pick(r.Passed), Failed: pick(r.Failed), Skipped: pick(r.Skipped)}
}

var ended = regexp.MustCompile(`^\s*--- (PASS|FAIL|SKIP): (.+) \([0-9.]+s\)$`)

// ReadGoTest reads what a Go test program writes with -test.v.
func ReadGoTest(output io.Reader) (Result, error) {
	var r Result
	lines := bufio.NewScanner(output)
	lines.Buffer(nil, 16<<20) // some tests log whole objects
	for lines.Scan() {
		m := ended.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		list := map[string]*[]string{"PASS": &r.Passed, "FAIL": &r.Failed, "SKIP": &r.Skipped}[m[1]]
		*list = append(*list, m[2])
	}
	return r, lines.Err()
}
