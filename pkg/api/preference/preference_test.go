package preference_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/jobferry/jobferry/pkg/api/preference"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

var since = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func parse(value string) (*preference.Preference, error) {
	return preference.Parse(map[string]string{v1alpha1.AnnotationClusterPreference: value})
}

// TestSteps has the step of a cluster, and how long the Job waits for it.
func TestSteps(t *testing.T) {
	const all = "tier=owned; region in (eu, us),!spot after 5m; * after 1h30m"
	for _, row := range []struct {
		value   string
		cluster labels.Set
		step    int
		wait    time.Duration
	}{
		{all, labels.Set{"tier": "owned"}, 0, 0},
		{all, labels.Set{"tier": "owned", "region": "eu"}, 0, 0},
		{all, labels.Set{"tier": "rented", "region": "us"}, 1, 5 * time.Minute},
		{all, labels.Set{"region": "us", "spot": "yes"}, 2, 90 * time.Minute},
		{all, nil, 2, 90 * time.Minute},
		{"a; b", labels.Set{"b": ""}, 1, 0},
		{"a after 30s;b after 1m", labels.Set{"a": "x"}, 0, 30 * time.Second},
		{"after after 2s", labels.Set{"after": ""}, 0, 2 * time.Second},
	} {
		p, err := parse(row.value)
		if err != nil {
			t.Fatalf("%q: %v", row.value, err)
		}
		step, opens := p.StepOf(row.cluster, since)
		if step != row.step || !opens.Equal(since.Add(row.wait)) {
			t.Errorf("%q, {%s}: step %d at %s, want %d after %s", row.value, row.cluster, step, opens, row.step, row.wait)
		}
	}
	if p, _ := parse("a; b"); p != nil {
		if step, _ := p.StepOf(labels.Set{"c": ""}, since); step != preference.None {
			t.Errorf("a cluster that no step selects has step %d", step)
		}
	}
	if step, opens := (*preference.Preference)(nil).StepOf(nil, since); step != 0 || !opens.IsZero() {
		t.Errorf("without a preference: step %d at %s", step, opens)
	}
}

func TestOpens(t *testing.T) {
	p, err := parse("a; b after 5m; c after 5m; * after 30m")
	if err != nil {
		t.Fatal(err)
	}
	for waited, want := range map[time.Duration]time.Duration{
		-time.Second: time.Second, 0: 5 * time.Minute, 299 * time.Second: time.Second,
		5 * time.Minute: 25 * time.Minute, 30 * time.Minute: 0, time.Hour: 0,
	} {
		if got := p.Opens(since, since.Add(waited)); got != want {
			t.Errorf("after %s the next step opens in %s, want %s", waited, got, want)
		}
	}
	if got := (*preference.Preference)(nil).Opens(since, since); got != 0 {
		t.Errorf("without a preference: %s", got)
	}
}

// TestParseTellsTheWayOut has part of what the user is told. The policy jobferry-jobs is held to
// Parse.
func TestParseTellsTheWayOut(t *testing.T) {
	for value, want := range map[string]string{
		"a; b c":                        `the step "b c" is neither a label selector nor *`,
		"a;":                            `the step "" is neither`,
		"a after 5 minutes":             `the step "a after 5 minutes" is neither`,
		"a after 5m; b":                 "a step opens before the one that it follows",
		strings.Repeat("a;", 8) + "a":   "it has more than 8 steps",
		"a=" + strings.Repeat("b", 1e6): "it's longer than 1024 bytes",
	} {
		_, err := parse(value)
		for _, part := range []string{want, "annotation jobferry.dev/cluster-preference: ", `set it to steps such as "tier=owned;`} {
			if !strings.Contains(fmt.Sprint(err), part) {
				t.Errorf("%.40q: %v doesn't say %q", value, err, part)
			}
		}
	}
}

func TestReturns(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"a; return": 10 * time.Minute, "a after 5m;\treturn  after 1m30s ": 90 * time.Second, "a; b": -1, "return": -1, "return; a": -1, "a; return=x": -1, "": -1,
	} {
		p, err := parse(value)
		if err != nil {
			t.Fatalf("%q: %v", value, err)
		}
		if got, returns := p.Returns(); returns != (want >= 0) || returns && got != want {
			t.Errorf("%q: %s, %t, want %s", value, got, returns, want)
		}
	}
}

func TestBefore(t *testing.T) {
	p, err := parse("a; b after 5m; * after 10m; return")
	if err != nil {
		t.Fatal(err)
	}
	for own, want := range map[string]int{"a": 0, "b": 1, "c": 2} { // how many steps there are before
		before := p.Before(labels.Set{own: ""})
		if (before == nil) != (want == 0) {
			t.Fatalf("before %s: %v", own, before)
		}
		if before == nil {
			continue
		}
		steps := 0
		for _, other := range []string{"a", "b", "c"} {
			if step, _ := before.StepOf(labels.Set{other: ""}, since); step != preference.None {
				steps++
			}
		}
		if steps != want {
			t.Errorf("before %s: %d clusters, want %d", own, steps, want)
		}
	}
	strict, _ := parse("a; b; return")
	if before := strict.Before(labels.Set{"c": ""}); before == nil {
		t.Error("a worker that no step selects has none before it")
	}
}
