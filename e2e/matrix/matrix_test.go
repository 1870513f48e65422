package matrix

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jobferry/jobferry/e2e/checkout"
	"github.com/jobferry/jobferry/e2e/matrix/table"
	"github.com/jobferry/jobferry/e2e/rig/binaries"
)

func TestStoriesAreTestsOfTheirFolder(t *testing.T) {
	for _, f := range features {
		files, err := filepath.Glob(checkout.Path("e2e", f.folder, "*_test.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no tests in %s", f.name, f.folder)
		}
		var source strings.Builder
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			source.Write(text)
		}
		for _, story := range f.stories {
			test, _, _ := strings.Cut(story, "/")
			if !strings.Contains(source.String(), "\nfunc "+test+"(") {
				t.Errorf("%s: %s has no test %s", f.name, f.folder, test)
			}
		}
		if len(f.stories) == 0 {
			t.Errorf("%s has no stories", f.name)
		}
	}
}

// The stories of a folder are told in one run, so what they depend on is the same.
func TestFolderHasOneScope(t *testing.T) {
	scopes := map[string]scope{}
	for _, f := range features {
		if s, ok := scopes[f.folder]; ok && s != f.scope {
			t.Errorf("%s: its folder %s is also of scope %s", f.name, f.folder, s)
		}
		scopes[f.folder] = f.scope
		if (len(f.lacks) > 0) != (f.why != "") {
			t.Errorf("%s: hubs %v lack it, because %q", f.name, f.lacks, f.why)
		}
	}
}

func TestRunsThatDependOnOneSideCountForAllPairs(t *testing.T) {
	count := map[run]int{}
	o := DefaultOptions()
	for _, p := range o.pairs() {
		for _, r := range runsOf(p) {
			count[r]++
		}
	}
	for r, want := range map[run]int{
		{folder: "admission", hub: "1.33"}: 5, {folder: "worker", worker: "1.37"}: 3, {"fence", "1.35", "1.36"}: 1,
	} {
		if count[r] != want {
			t.Errorf("%v counts for %d pairs, want %d", r, count[r], want)
		}
	}
	if old, current := (run{"admission", "1.35", ""}).stories(), (run{"admission", "1.36", ""}).stories(); slices.Contains(old, "TestClaimedByPolicy") ||
		!slices.Contains(old, "TestClaimedByWebhook") || !slices.Contains(current, "TestClaimedByPolicy") {
		t.Errorf("stories of admission: %v on 1.35, %v on 1.36", old, current)
	}
}

func TestPattern(t *testing.T) {
	got := pattern([]string{"TestA", "TestB/a story: it's told"})
	if want := `^TestA$|^TestB$/^a_story:_it's_told$`; got != want {
		t.Errorf("pattern %s, want %s", got, want)
	}
}

func TestBadOptions(t *testing.T) {
	for want, change := range map[string]func(*Options){
		`hub: there is no release "1.20", only [1.37 `:         func(o *Options) { o.Hubs = []string{"1.20"} },
		"worker: name at least one release of [1.37 ":          func(o *Options) { o.Workers = nil },
		"worker: 1.36 is named twice":                          func(o *Options) { o.Workers = ParseReleases("1.36 1.37  1.36") },
		"results: name a folder":                               func(o *Options) { o.Results = "" },
		"parallel: must be at least 1, not 0":                  func(o *Options) { o.Parallel = 0 },
		`worker: there is no release "1.37,1.36", only [1.37 `: func(o *Options) { o.Workers = ParseReleases("1.37,1.36") },
	} {
		o := DefaultOptions()
		o.Results = t.TempDir()
		change(&o)
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %s", err, want)
		}
		if _, err := Run(t.Context(), o); err == nil {
			t.Errorf("ran all the same, though %s", want)
		}
	}
}

// fake is a matrix whose test program of one folder is a script.
func fake(t *testing.T, folder, script string) *matrix {
	t.Helper()
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	o := DefaultOptions()
	o.Results = t.TempDir()
	o.Progress = t.Logf
	return &matrix{Options: o, results: results(o.Results), version: "v1",
		tests: testPrograms{built: map[string]string{folder: program}}}
}

var fenceRun = run{"fence", "1.33", "1.37"}

// says is a script that says that these tests have passed.
func says(tests ...string) string {
	var script strings.Builder
	for _, test := range tests {
		fmt.Fprintf(&script, "printf '\\026=== RUN   %s\\n\\026--- PASS: %s (0.01s)\\n'\n", test, test)
	}
	return script.String() + "printf '\\026PASS\\n'\n"
}

func TestRunIsRecorded(t *testing.T) {
	m := fake(t, fenceRun.folder, says(fenceRun.stories()...)+`echo "$RIG_HUB $RIG_WORKER $*" >`+"$JOBFERRY_SAID\n")
	said := filepath.Join(t.TempDir(), "said")
	t.Setenv("JOBFERRY_SAID", said)
	m.expectPassed(t, false)
	if err := m.run(t.Context(), fenceRun); err != nil {
		t.Fatal(err)
	}
	m.expectPassed(t, true)
	text, err := os.ReadFile(said)
	if want := regexp.MustCompile(`^1\.33 1\.37 .*-test.run=\^TestStoppedInTimeAndConfirmed\$\|`); err != nil || !want.Match(text) {
		t.Errorf("the test was run with %q, error %v", text, err)
	}
	if files, err := os.ReadDir(m.Results); err != nil || len(files) != 1 {
		t.Errorf("results: %v, %v", files, err)
	}
}

func (m *matrix) expectPassed(t *testing.T, want bool) {
	t.Helper()
	if got, err := m.results.passed(fenceRun); got != want || err != nil {
		t.Errorf("passed %t, error %v; want %t", got, err, want)
	}
}

// What has failed, and what never ran, is run again.
func TestFailedRunIsRunAgain(t *testing.T) {
	stories := fenceRun.stories()
	for name, script := range map[string]string{
		"one fails":      says(stories[0]) + fmt.Sprintf("printf '\\026=== RUN   %[1]s\\n    x_test.go:1: why\\n\\026--- FAIL: %[1]s (0.01s)\\n'\nprintf '\\026FAIL\\n'\nexit 1\n", stories[1]),
		"one is missing": says(stories[0]),
		"it crashes":     "echo 'panic: x'\nexit 2\n",
	} {
		t.Run(name, func(t *testing.T) {
			m := fake(t, fenceRun.folder, script)
			if err := m.run(t.Context(), fenceRun); err != nil {
				t.Fatal(err)
			}
			m.expectPassed(t, false)
		})
	}
}

func TestInterruptedRunLeavesNoResult(t *testing.T) {
	started := filepath.Join(t.TempDir(), "started")
	t.Setenv("JOBFERRY_SAID", started)
	m := fake(t, fenceRun.folder, says(fenceRun.stories()...)+"echo >$JOBFERRY_SAID\nexec sleep 1000\n")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- m.run(ctx, fenceRun) }()
	until(t, func() bool {
		_, err := os.Stat(started)
		return err == nil
	})
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
	if files, err := os.ReadDir(m.Results); err != nil || len(files) != 0 {
		t.Errorf("results: %v, %v", files, err)
	}
}

func until(t *testing.T, so func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("it never happens")
		}
	}
}

func TestTableOfResults(t *testing.T) {
	m := fake(t, fenceRun.folder, says(fenceRun.stories()...))
	m.Hubs, m.Workers = []string{"1.33"}, []string{"1.36", "1.37"}
	if err := m.run(t.Context(), fenceRun); err != nil {
		t.Fatal(err)
	}
	got, err := Known(m.Options)
	if err != nil {
		t.Fatal(err)
	}
	answers := map[string]string{}
	for _, row := range got.Rows {
		for _, worker := range m.Workers {
			cell := row.Cell(table.Pair{Hub: "1.33", Worker: worker})
			answers[row.Feature] += string(cell.Answer) + " "
			if cell.Answer != table.Yes && cell.Reason == "" {
				t.Errorf("%s with %s: no reason", row.Feature, worker)
			}
		}
	}
	if answers["fence"] != "untried yes " || answers["live status"] != "untried untried " {
		t.Errorf("answers: %v", answers)
	}
	if version, err := binaries.Version("1.37"); err != nil || got.Patches["1.37"] != version || !strings.HasPrefix(version, "v1.37.") {
		t.Errorf("versions %v, error %v", got.Patches, err)
	}
	if err := os.WriteFile(m.results.file(fenceRun), []byte("x\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Known(m.Options); err == nil || !strings.Contains(err.Error(), "fence-hub-1.33-worker-1.37.json: line 1 is no result of a test") {
		t.Errorf("the error is %v", err)
	}
}
