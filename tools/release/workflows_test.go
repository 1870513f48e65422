package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	uses   = regexp.MustCompile(`uses: *(\S+)(.*)`)
	pinned = regexp.MustCompile(`^[\w-]+/[\w-]+@[0-9a-f]{40}$`)
	minor  = regexp.MustCompile(`\b1\.[0-9]+\b`)
)

// A tag of an action can move: workflows name its commit, with the version beside it.
func TestActionsAreNamedByCommit(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(repository, ".github", "workflows", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	commits := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range uses.FindAllStringSubmatch(string(text), -1) {
			action, commit, _ := strings.Cut(found[1], "@")
			if !pinned.MatchString(found[1]) || !strings.HasPrefix(found[2], " # v") {
				t.Errorf("%s: %s%s is no commit with its version", filepath.Base(file), found[1], found[2])
			}
			if other := commits[action]; other != "" && other != commit {
				t.Errorf("%s is of two commits, %s and %s", action, commit, other)
			}
			commits[action] = commit
		}
	}
	if len(commits) < 3 {
		t.Errorf("found only %v", commits)
	}
}

// What a workflow runs of this repository, and of its dependencies, finds no token in .git/config.
func TestCheckoutsLeaveNoToken(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(repository, ".github", "workflows", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, after := range strings.Split(string(text), "actions/checkout@")[1:] {
			step, _, _ := strings.Cut(after, "\n      - ")
			if !strings.Contains(step, "persist-credentials: false") {
				t.Errorf("%s: checkout %d leaves the workflow's token in .git/config", filepath.Base(file), i+1)
			}
		}
	}
}

// The weekly matrix has the versions of Kubernetes that docs/reference/support.md promises.
func TestTheMatrixIsWhatIsSupported(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(repository, "docs", "reference", "support.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, promise, _ := strings.Cut(string(page), "**Kubernetes ")
	promise, _, _ = strings.Cut(promise, "**")
	supported := minor.FindAllString(promise, -1)
	workflow, err := os.ReadFile(filepath.Join(repository, ".github", "workflows", "matrix.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		fmt.Sprintf(`hub: ["%s"]`, strings.Join(supported, `", "`)),
		fmt.Sprintf(`WORKER="%s"`, strings.Join(supported, " ")),
	} {
		if !strings.Contains(string(workflow), want) {
			t.Errorf("matrix.yaml doesn't have %s", want)
		}
	}
	if len(supported) < 5 || !slices.IsSorted(supported) {
		t.Errorf("docs/reference/support.md promises %v", supported)
	}
}
