package table

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// event is one line of what `go tool test2json` writes.
type event struct {
	Time   time.Time
	Action string
	Test   string
	Output string
}

// The actions of events that end a test, or the whole run when they name no test.
const (
	passed  = "pass"
	failed  = "fail"
	skipped = "skip"
	output  = "output"
)

// header is the action of the line before all events, which this package adds: Output is the
// version of Jobferry that was tested.
const header = "tested"

// Header is the line that Parse expects before the events.
func Header(version string, at time.Time) ([]byte, error) {
	line, err := json.Marshal(event{Time: at, Action: header, Output: version})
	return append(line, '\n'), err
}

// Outcome is what became of the tests of one run of a package.
type Outcome struct {
	// Version of Jobferry.
	Version  string
	From, To time.Time
	// ended are the last actions of tests, by name.
	ended map[string]string
	// printed are the last lines of each test's output.
	printed map[string][]string
}

// linesKept of each test's output.
const linesKept = 40

// Parse reads the results of one run. It fails on what is no such file; a run that was cut short is
// one whose tests have no results.
func Parse(r io.Reader) (*Outcome, error) {
	o := &Outcome{ended: map[string]string{}, printed: map[string][]string{}}
	lines := bufio.NewReader(r)
	for number := 1; ; number++ {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF && len(line) == 0 {
			break
		}
		if err != nil && err != io.EOF {
			return nil, err
		}
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("line %d is no result of a test: %w", number, err)
		}
		if number == 1 && e.Action != header {
			return nil, fmt.Errorf("line 1 doesn't say which version was tested")
		}
		o.add(e)
	}
	if o.Version == "" {
		return nil, fmt.Errorf("no results")
	}
	return o, nil
}

func (o *Outcome) add(e event) {
	if o.From.IsZero() || e.Time.Before(o.From) && !e.Time.IsZero() {
		o.From = e.Time
	}
	if e.Time.After(o.To) {
		o.To = e.Time
	}
	switch e.Action {
	case header:
		o.Version = e.Output
	case passed, failed, skipped:
		o.ended[e.Test] = e.Action
	case output:
		lines := append(o.printed[e.Test], e.Output)
		o.printed[e.Test] = lines[max(0, len(lines)-linesKept):]
	}
}

// Verdict is what the stories of a feature say together: yes if each of them has passed.
func (o *Outcome) Verdict(stories []string) Cell {
	var reasons []string
	for _, story := range stories {
		switch o.ended[TestName(story)] {
		case passed:
		case failed:
			reasons = append(reasons, story+" failed")
		case skipped:
			reasons = append(reasons, story+" was skipped")
		default:
			reasons = append(reasons, story+" has no result")
		}
	}
	if len(reasons) > 0 {
		return Cell{Answer: No, Reason: strings.Join(reasons, "; ")}
	}
	return Cell{Answer: Yes}
}

// Passed says whether each of the stories has passed.
func (o *Outcome) Passed(stories []string) bool { return o.Verdict(stories).Answer == Yes }

// Failures is the end of what failed tests printed, and of what the run printed itself if it
// failed.
func (o *Outcome) Failures() string {
	var out strings.Builder
	for _, test := range slices.Sorted(maps.Keys(o.printed)) {
		if o.ended[test] == passed || o.ended[test] == skipped {
			continue
		}
		fmt.Fprintf(&out, "--- %s\n%s", test, strings.Join(o.printed[test], ""))
	}
	return out.String()
}

// TestName is a story's name as go test writes it: spaces are underscores there.
func TestName(story string) string { return strings.ReplaceAll(story, " ", "_") }
