package scratch

import (
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

const source = `package p

func setup() {}

func check(int) {}

func run() { check(1); setup() }
`

func TestApply(t *testing.T) {
	got, err := Apply("p.go", source, Rename("check"), Change{Old: "setup() {}", New: "setup() { _ = 1 }"})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"func kubernetes_check(int) {}", "func setup() { _ = 1 }", "func run() { check(1); setup() }"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q isn't in\n%s", want, got)
		}
	}
}

// A change that doesn't fit, or fits twice, is an error.
func TestApplyIsStrict(t *testing.T) {
	for name, c := range map[string]Change{
		"gone":    Rename("absent"),
		"twice":   {Old: "setup()", New: "x"},
		"a call":  Rename("1"),
		"a start": Rename("chec"),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Apply("p.go", source, c); err == nil || !strings.Contains(err.Error(), "p.go has ") {
				t.Errorf("error %v", err)
			}
		})
	}
}

const versions = `module github.com/jobferry/jobferry/e2e/versions/v1.99

go 1.26.0

tool (
	k8s.io/kubernetes/cmd/kube-apiserver
	k8s.io/kubernetes/cmd/kube-scheduler
)

require (
	k8s.io/api v0.99.1 // indirect
	k8s.io/kubernetes v1.99.1 // indirect
)

replace k8s.io/api => k8s.io/api v0.99.1
`

func TestGoMod(t *testing.T) {
	for root, replaces := range map[string]int{"": 1, "/src/jobferry": 2} {
		text, err := goMod([]byte(versions), root)
		if err != nil {
			t.Fatal(err)
		}
		f, err := modfile.Parse("go.mod", text, nil)
		if err != nil {
			t.Fatal(err)
		}
		if f.Module.Mod.Path != modulePath || len(f.Tool) != 0 || len(f.Replace) != replaces || len(f.Require) != 1+replaces {
			t.Errorf("with the product in %q:\n%s", root, text)
		}
	}
}
