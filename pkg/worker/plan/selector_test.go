package plan

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

func selecting(s *metav1.LabelSelector) Selector {
	return SelectorOf(&batchv1.Job{Spec: batchv1.JobSpec{Selector: s}})
}

// A selector matches what Kubernetes' own does.
func TestSelectorIsKubernetes(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	some := func(of string) string { return of + strconv.Itoa(rnd.IntN(3)) }
	operators := []metav1.LabelSelectorOperator{
		metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist,
	}
	for n := range 3000 {
		var s *metav1.LabelSelector
		if n > 0 {
			s = &metav1.LabelSelector{}
		}
		for range rnd.IntN(3) * min(n, 1) {
			metav1.AddLabelToSelector(s, some("key"), some("value"))
		}
		for range rnd.IntN(5) * min(n, 1) {
			r := metav1.LabelSelectorRequirement{Key: some("key"), Operator: operators[rnd.IntN(4)]}
			if r.Operator == metav1.LabelSelectorOpIn || r.Operator == metav1.LabelSelectorOpNotIn {
				r.Values = []string{some("value"), some("value")}
			}
			s.MatchExpressions = append(s.MatchExpressions, r)
		}
		theirs, err := metav1.LabelSelectorAsSelector(s)
		if err != nil {
			t.Fatal(err)
		}
		ours := selecting(s)
		for range 10 {
			set := map[string]string{}
			for range rnd.IntN(4) {
				set[some("key")] = some("value")
			}
			if got, want := ours.Matches(set), theirs.Matches(labels.Set(set)); got != want {
				t.Fatalf("%s matches %v: %v, want %v", theirs, set, got, want)
			}
		}
	}
}

// A tenant's Job has as many values as fit into one.
func TestSelectorOfVeryManyValues(t *testing.T) {
	r := metav1.LabelSelectorRequirement{Key: "key", Operator: metav1.LabelSelectorOpIn}
	for i := range 100_000 {
		r.Values = append(r.Values, fmt.Sprintf("%x", i))
	}
	s := selecting(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{r}})
	set := map[string]string{"key": "7fff"}
	if !s.Matches(set) {
		t.Fatal("doesn't match")
	}
	if n := testing.AllocsPerRun(10, func() { s.Matches(set) }); n > 0 {
		t.Errorf("%v allocations for a match", n)
	}
}

// A tenant's Job has as many expressions as fit into one, and his Pods many labels.
func TestSelectorOfVeryManyExpressions(t *testing.T) {
	same, own := &metav1.LabelSelector{}, &metav1.LabelSelector{}
	labels := map[string]string{}
	for i := range 60_000 {
		r := metav1.LabelSelectorRequirement{Key: "key", Operator: metav1.LabelSelectorOpDoesNotExist}
		same.MatchExpressions = append(same.MatchExpressions, r)
		r.Key = fmt.Sprintf("%x", i)
		own.MatchExpressions = append(own.MatchExpressions, r)
		labels["label-"+r.Key] = ""
	}
	few := map[string]string{"x": "1", "y": "2"}
	for name, row := range map[string]struct {
		selector *metav1.LabelSelector
		labels   map[string]string
		want     int
	}{
		"with one key":                 {same, few, 1},
		"with one key, of many labels": {same, labels, 1},
		"each with a key of its own":   {own, few, 2},
		"that ask for more labels than there are": {
			&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "a", Operator: metav1.LabelSelectorOpExists}, {Key: "c", Operator: metav1.LabelSelectorOpExists},
			}}, map[string]string{"a": ""}, 0,
		},
	} {
		s := selecting(row.selector)
		if matches, looked := s.Look(row.labels); looked != row.want || matches == (row.want == 0) {
			t.Errorf("%s: matches %v, looks at %d keys, want %d", name, matches, looked, row.want)
		}
		if n := testing.AllocsPerRun(10, func() { s.Matches(row.labels) }); n > 0 {
			t.Errorf("%s: %v allocations for a match", name, n)
		}
	}
}
