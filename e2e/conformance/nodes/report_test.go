package nodes

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jobferry/jobferry/e2e/conformance"
)

const ginkgo = `[{"SuitePath": "x", "SpecReports": [
	{"ContainerHierarchyTexts": null, "LeafNodeType": "BeforeSuite", "LeafNodeText": "", "State": "passed"},
	{"ContainerHierarchyTexts": ["[sig-apps] Job"], "LeafNodeType": "It", "LeafNodeText": "should a (b) [Conformance]", "State": "passed"},
	{"ContainerHierarchyTexts": ["[sig-apps] Job"], "LeafNodeType": "It", "LeafNodeText": "should c [Serial]", "State": "timedout", "Failure": {"Message": "m"}},
	{"ContainerHierarchyTexts": ["[sig-apps] Job"], "LeafNodeType": "It", "LeafNodeText": "should d", "State": "skipped", "Failure": {"Message": "no"}},
	{"ContainerHierarchyTexts": ["[sig-apps] StatefulSet"], "LeafNodeType": "It", "LeafNodeText": "should e", "State": "skipped"}
]}]`

var all = []testCase{
	{Name: "should a (b)", Text: "[sig-apps] Job should a (b) [Conformance]", Conformance: true, State: "passed"},
	{Name: "should c", Text: "[sig-apps] Job should c [Serial]", Serial: true, State: "timedout"},
	{Name: "should d", Text: "[sig-apps] Job should d", State: "skipped"},
}

func TestReadReport(t *testing.T) {
	got, err := readReport([]byte(ginkgo))
	if diff := cmp.Diff(all, got); err != nil || diff != "" {
		t.Errorf("error %v\n%s", err, diff)
	}
	if _, err := readReport([]byte("nothing")); err == nil {
		t.Error("no report: no error")
	}
	var r conformance.Result
	for _, c := range got {
		r.Add(resultOf(c))
		if p := regexp.MustCompile(c.pattern()); !p.MatchString("suite "+c.Text) || p.MatchString("suite "+c.Text+"x") {
			t.Errorf("pattern %s", c.pattern())
		}
	}
	want := conformance.Result{Passed: []string{"should a (b)"}, Failed: []string{"should c"}, Skipped: []string{"should d"}}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Error(diff)
	}
}

func TestChoose(t *testing.T) {
	leftOut := []conformance.Case{{Name: "should d"}}
	for short, want := range map[bool][]testCase{false: all[:2], true: all[:1]} {
		got, err := choose(all, leftOut, short)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("short %v: error %v\n%s", short, err, diff)
		}
	}
	if _, err := choose(all, []conformance.Case{{Name: "should x"}}, false); err == nil || !strings.Contains(err.Error(), "should x") {
		t.Errorf("a case that is gone: error %v", err)
	}
}
