package conformance

import (
	"fmt"
	"strings"
)

// Line tells a result in one line, with the number of tests that are left out.
func (r Result) Line(part Part) string {
	var counts []string
	for _, c := range []struct {
		what     string
		subtests bool
	}{{"tests", false}, {"subtests", true}} {
		if only := r.Only(c.subtests); only.Total() > 0 {
			counts = append(counts, fmt.Sprintf("%d of %d %s", len(only.Passed), only.Total(), c.what))
		}
	}
	line := fmt.Sprintf("%s: %s passed", part, strings.Join(counts, ", "))
	if n := len(LeftOut[part]); n > 0 {
		line += fmt.Sprintf("; %d left out (docs/reference/conformance.md says why)", n)
	}
	return line
}
