package nodes

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/jobferry/jobferry/e2e/conformance"
)

// testCase is one of Kubernetes' cases, or of JobSet's.
type testCase struct {
	// Name is its own text without the tags in brackets that follow, Text the whole, with which it can
	// be chosen.
	Name, Text string
	// Serial cases run alone. Conformance cases are those that conformance of a cluster asks for.
	Serial, Conformance bool
	// State is what Ginkgo says of it.
	State string
}

// pattern chooses the case: Ginkgo matches it with the suite's name, a blank and the text.
func (c testCase) pattern() string { return " " + regexp.QuoteMeta(c.Text) + "$" }

// readReport reads the cases in Ginkgo's JSON report that were chosen.
func readReport(content []byte) ([]testCase, error) {
	var suites []struct {
		SpecReports []struct {
			ContainerHierarchyTexts []string
			LeafNodeType            string
			LeafNodeText            string
			State                   string
			Failure                 struct{ Message string }
		}
	}
	if err := json.Unmarshal(content, &suites); err != nil {
		return nil, fmt.Errorf("the report of the cases: %w", err)
	}
	var all []testCase
	for _, suite := range suites {
		for _, spec := range suite.SpecReports {
			// not chosen
			if spec.LeafNodeType != "It" || (spec.State == "skipped" && spec.Failure.Message == "") {
				continue
			}
			text := strings.Join(append(slices.Clone(spec.ContainerHierarchyTexts), spec.LeafNodeText), " ")
			name, _, _ := strings.Cut(spec.LeafNodeText, " [")
			all = append(all, testCase{
				Name: name, Text: text, State: spec.State,
				Serial: strings.Contains(text, "[Serial]"), Conformance: strings.Contains(text, "[Conformance]"),
			})
		}
	}
	return all, nil
}

// choose removes the cases that are left out. One that isn't there is an error.
func choose(all []testCase, leftOut []conformance.Case, short bool) ([]testCase, error) {
	for _, c := range leftOut {
		if !slices.ContainsFunc(all, func(t testCase) bool { return t.Name == c.Name }) {
			return nil, fmt.Errorf("left out, but there is no such case: %s", c.Name)
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(t testCase) bool {
		return slices.ContainsFunc(leftOut, func(c conformance.Case) bool { return c.Name == t.Name }) || (short && !t.Conformance)
	}), nil
}

// resultOf is the result of a case that has run.
func resultOf(c testCase) conformance.Result {
	switch names := []string{c.Name}; c.State {
	case "passed":
		return conformance.Result{Passed: names}
	case "skipped":
		return conformance.Result{Skipped: names}
	default:
		return conformance.Result{Failed: names}
	}
}
