package preference_test

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/jobferry/jobferry/pkg/api/preference"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/util/costtest"
)

func TestParseSelector(t *testing.T) {
	for _, annotations := range []map[string]string{nil, {}, {v1alpha1.AnnotationClusterSelector: ""}} {
		if selector, err := preference.ParseSelector(annotations); selector != nil || err != nil {
			t.Errorf("%v: got %v, %v", annotations, selector, err)
		}
	}
	selector, err := preference.ParseSelector(map[string]string{v1alpha1.AnnotationClusterSelector: "region=eu, gpu in (a100, h100)"})
	if err != nil {
		t.Fatal(err)
	}
	if !selector.Matches(labels.Set{"region": "eu", "gpu": "h100"}) || selector.Matches(labels.Set{"region": "eu"}) {
		t.Errorf("%v doesn't select what it says", selector)
	}
}

func TestParseSelectorTellsTheWayOut(t *testing.T) {
	_, err := preference.ParseSelector(map[string]string{v1alpha1.AnnotationClusterSelector: "gpu in a100"})
	var invalid *preference.SelectorError
	if !errors.As(err, &invalid) || invalid.Value != "gpu in a100" || errors.Unwrap(err) == nil {
		t.Fatalf("got %v", err)
	}
	for _, part := range []string{"jobferry.dev/cluster-selector", `"gpu in a100"`, `set it to one such as "region=eu`, "remove it"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q doesn't say %q", err, part)
		}
	}
}

func FuzzCost(f *testing.F) {
	f.Add("a", ";a", "")
	f.Add("a", ",a", "; return after 1h")
	f.Add("a", " ", "after 5m")
	costtest.Check(f, 64<<10, 20, func(text string) {
		_, _ = preference.Parse(map[string]string{v1alpha1.AnnotationClusterPreference: text})
		_, _ = preference.ParseSelector(map[string]string{v1alpha1.AnnotationClusterSelector: text})
	})
}
