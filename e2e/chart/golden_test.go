package chart_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jobferry/jobferry/e2e/chart/charttest"
)

// valueSets are the value files of a chart, by name.
func valueSets(t *testing.T, chart string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "values", chart, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no values for chart %s (error %v)", chart, err)
	}
	sets := map[string]string{}
	for _, file := range files {
		sets[strings.TrimSuffix(filepath.Base(file), ".yaml")] = file
	}
	return sets
}

// What the charts make of several sets of values is as it was looked at. CRDs are left out:
// TestCRDs holds them to the generated ones.
func TestGolden(t *testing.T) {
	for _, chart := range []string{hubChart, workerChart} {
		for name, values := range valueSets(t, chart) {
			t.Run(chart+"/"+name, func(t *testing.T) {
				t.Parallel()
				args := []string{"-f", values}
				if chart == hubChart {
					args = append(args, "--set", "crds.enabled=false")
				}
				golden(t, filepath.Join("testdata", "golden", chart, name+".yaml"), charttest.Helm(t, template(chart, args...)...))
			})
		}
	}
}

// golden holds a text to a file, or writes it there.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-file +now); -update writes it anew:\n%s", file, diff)
	}
}

// Helm's own checks find nothing to say.
func TestLint(t *testing.T) {
	for _, chart := range []string{hubChart, workerChart} {
		for name, values := range valueSets(t, chart) {
			t.Run(chart+"/"+name, func(t *testing.T) {
				t.Parallel()
				out := charttest.Helm(t, "lint", chartDir(chart), "--strict", "--kube-version", "1.36.0", "-f", values)
				if !strings.Contains(out, "1 chart(s) linted, 0 chart(s) failed") {
					t.Error(out)
				}
			})
		}
	}
}
