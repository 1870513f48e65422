package integration

import (
	"slices"
	"strings"
	"testing"

	"github.com/jobferry/jobferry/e2e/conformance"
)

const source = `package job

func TestMain(m *testing.M) {}

func TestA(t *testing.T) {
	cases := map[string]int{"one; off": 1, "two": 2}
}

func TestB(t *testing.T) {}

func TestC_Again(t *testing.T) {}

func BenchmarkD(b *testing.B) {}
`

func TestTestsOf(t *testing.T) {
	got, err := testsOf(source, []conformance.Case{{Name: "TestB"}, {Name: "TestA/one; off"}})
	if err != nil || !slices.Equal(got, []string{"TestA", "TestC_Again"}) {
		t.Errorf("got %v, error %v", got, err)
	}
}

// What is left out must be there: else nobody would notice that it has another name now.
func TestLeftOutIsThere(t *testing.T) {
	for _, name := range []string{"TestX", "TestA/three"} {
		if _, err := testsOf(source, []conformance.Case{{Name: name}}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestDealGivesEachTestToOneProcess(t *testing.T) {
	tests := []string{"a", "b", "c", "d", "e"}
	shares := deal(tests, 2)
	if all := slices.Sorted(slices.Values(slices.Concat(shares...))); !slices.Equal(all, tests) || len(shares[0]) != 3 {
		t.Errorf("shares %v", shares)
	}
}

// A test that a crash ended has no result.
func TestMissing(t *testing.T) {
	got := missing([]string{"a", "b", "c", "d"}, conformance.Result{Passed: []string{"a"}, Failed: []string{"c"}, Skipped: []string{"d"}})
	if !slices.Equal(got, []string{"b"}) {
		t.Errorf("missing %v", got)
	}
}
