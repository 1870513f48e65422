package docs

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

const page = "# Title\n\n```sh\nkubectl get x\n```\n```text\nNAME   AGE\na      ...\n```\n\nText.\n\n" +
	"<!-- by: e2e/demo -->\n```sh\nmake demo\n```\n\n```\nplain\n```\n\n- in a list:\n\n  ```yaml\n  apiVersion: v1\n    a: b\n  ```\n"

func TestParse(t *testing.T) {
	got, err := Parse(page)
	if err != nil {
		t.Fatal(err)
	}
	prints := "NAME   AGE\na      ...\n"
	want := []Block{
		{Line: 4, Lang: "sh", Text: "kubectl get x\n", Prints: &prints},
		{Line: 15, Lang: "sh", Text: "make demo\n", By: "e2e/demo"},
		{Line: 19, Text: "plain\n"},
		{Line: 25, Lang: "yaml", Text: "apiVersion: v1\n  a: b\n"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, err := Parse("```sh\nx\n"); err == nil {
		t.Error("a block without end is taken")
	}
}

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		shown, output string
		want          bool
	}{
		{"a  b\n", "a b\n", true},
		{"a b", "a c\n", false},
		{"a ... z", "a b c z\n", true},
		{"a\n...\nz", "a\nb\nc\nz\n", true},
		{"a\n...\nz", "a\nz\n", true},
		{"a\n...", "a\nb\n", true},
		{"a", "a\nb\n", false},
		{"v1.36.3+x", "v1.36.3+x", true},
	} {
		if got := Matches(c.shown, c.output); got != c.want {
			t.Errorf("Matches(%q, %q) = %t", c.shown, c.output, got)
		}
	}
}
