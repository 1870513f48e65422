package table

import (
	"strings"
	"testing"
	"time"
)

const results = `{"Time":"2026-01-02T10:00:00Z","Action":"tested","Output":"commit 0123456789"}
{"Time":"2026-01-02T10:00:00Z","Action":"start"}
{"Time":"2026-01-02T10:00:01Z","Action":"run","Test":"TestA"}
{"Time":"2026-01-02T10:00:02Z","Action":"pass","Test":"TestA/a_story"}
{"Time":"2026-01-02T10:00:02Z","Action":"output","Test":"TestA/another","Output":"    a_test.go:1: went wrong\n"}
{"Time":"2026-01-02T10:00:03Z","Action":"fail","Test":"TestA/another"}
{"Time":"2026-01-02T10:00:03Z","Action":"fail","Test":"TestA"}
{"Time":"2026-01-02T10:00:03Z","Action":"output","Test":"TestB","Output":"fine\n"}
{"Time":"2026-01-02T10:00:03Z","Action":"pass","Test":"TestB"}
{"Time":"2026-01-02T10:00:04Z","Action":"skip","Test":"TestC"}
{"Time":"2026-01-02T10:00:05Z","Action":"fail"}
`

func parse(t *testing.T, text string) *Outcome {
	t.Helper()
	o, err := Parse(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestVerdict(t *testing.T) {
	o := parse(t, results)
	for story, want := range map[string]Cell{
		"TestA/a story":       {Answer: Yes},
		"TestB":               {Answer: Yes},
		"TestA/another":       {No, "TestA/another failed"},
		"TestC":               {No, "TestC was skipped"},
		"TestA/never told":    {No, "TestA/never told has no result"},
		"TestB TestC TestD":   {No, "TestC was skipped; TestD has no result"},
		"TestB TestA/a_story": {Answer: Yes},
	} {
		stories := []string{story}
		if strings.HasPrefix(story, "TestB ") {
			stories = strings.Fields(story)
		}
		if got := o.Verdict(stories); got != want {
			t.Errorf("%s: %v, want %v", story, got, want)
		}
		if o.Passed(stories) != (want.Answer == Yes) {
			t.Errorf("%s has passed: %t", story, o.Passed(stories))
		}
	}
	if got, want := o.Failures(), "--- TestA/another\n    a_test.go:1: went wrong\n"; got != want {
		t.Errorf("failures:\n%swant:\n%s", got, want)
	}
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                                 "no results",
		"x\n":                              "line 1 is no result of a test",
		`{"Action":"pass","Test":"TestA"}`: "line 1 doesn't say which version was tested",
		results + "{":                      "line 12 is no result of a test",
	} {
		if _, err := Parse(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%q) fails with %v, want %s", text, err, want)
		}
	}
}

func TestHeaderIsRead(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	line, err := Header("v1.2.3", at)
	if err != nil {
		t.Fatal(err)
	}
	if o := parse(t, string(line)); o.Version != "v1.2.3" || !o.From.Equal(at) || !o.To.Equal(at) {
		t.Errorf("read %+v", o)
	}
}

func TestMarkdown(t *testing.T) {
	const noPolicy = "The policy\nis on since 1.36."
	row := func(feature string, cells ...Cell) Row {
		r := Row{Feature: feature, Cells: map[Pair]Cell{}}
		for i, c := range cells {
			if c != (Cell{}) {
				r.Cells[Pair{[]string{"1.33", "1.37"}[i/2], []string{"1.36", "1.37"}[i%2]}] = c
			}
		}
		return r
	}
	yes, no, untried := Cell{Answer: Yes}, Cell{No, "TestA failed"}, Cell{Untried, noPolicy}
	table := &Table{
		Hubs: []string{"1.33", "1.37"}, Workers: []string{"1.36", "1.37"},
		Patches: map[string]string{"1.33": "v1.33.1", "1.36": "v1.36.2", "1.37": "v1.37.3"},
		Rows: []Row{
			row("dispatch", yes, yes, yes, no),
			row("admission", untried, untried, yes, Cell{}),
		},
	}
	table.Add(parse(t, results))
	table.Add(parse(t, strings.ReplaceAll(results, "T10:", "T09:")))
	if n := table.Failed(); n != 1 {
		t.Errorf("%d cells say no", n)
	}
	var out strings.Builder
	if err := table.Markdown(&out); err != nil {
		t.Fatal(err)
	}
	_, got, _ := strings.Cut(out.String(), "| | |\n")
	want := `|---|---|
| command | ` + "`" + `make matrix HUB="1.33 1.37" WORKER="1.36 1.37"` + "`" + ` |
| run | 2026-01-02, 09:00 to 10:00 UTC |
| Jobferry | commit 0123456789 |
| Kubernetes | v1.33.1, v1.36.2, v1.37.3 |
| result | 4 yes, 1 no, 3 untried |

## A hub of 1.33

| feature | worker 1.36 | worker 1.37 |
|---|---|---|
| dispatch | yes | yes |
| admission | – (1) | – (1) |

## A hub of 1.37

| feature | worker 1.36 | worker 1.37 |
|---|---|---|
| dispatch | yes | **no** (2) |
| admission | yes | – (3) |

## Reasons

1. The policy is on since 1.36.
2. TestA failed
3. not run
`
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestRunOverSeveralDays(t *testing.T) {
	table := &Table{}
	if when, what := table.period(), table.tested(); when != "never" || what != "never" {
		t.Errorf("without a run: run %s, Jobferry %s", when, what)
	}
	table.Add(parse(t, results))
	table.Add(parse(t, strings.ReplaceAll(results, "2026-01-02", "2026-01-03")))
	if got, want := table.period(), "2026-01-02 to 2026-01-03"; got != want {
		t.Errorf("ran %s, want %s", got, want)
	}
}
