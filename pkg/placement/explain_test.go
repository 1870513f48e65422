package placement_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/jobferry/jobferry/pkg/placement"
	. "github.com/jobferry/jobferry/pkg/placement/internal/capacity/capacitytest"
)

func gpuNode() *NodeBuilder {
	return NewNode("n").Has("nvidia.com/gpu", "4").Used("nvidia.com/gpu", "3")
}

func TestExplain(t *testing.T) {
	tests := []struct {
		name     string
		among    []string
		clusters []*Cluster
		want     string
		details  []string
	}{
		{name: "no clusters", want: "0/0 clusters available: no cluster is registered.", details: []string{}},
		{name: "the most frequent first", clusters: []*Cluster{
			NewCluster("c").Cordoned(), NewCluster("a").Nodes(gpuNode()), NewCluster("b").Nodes(gpuNode()),
		}, want: "0/3 clusters available: 2 Insufficient nvidia.com/gpu, 1 cordoned.", details: []string{
			"a: Insufficient nvidia.com/gpu: Pods that must fit at once: 2, that would: 1; " + tooLittle(1, "nvidia.com/gpu"),
			"b: Insufficient nvidia.com/gpu: Pods that must fit at once: 2, that would: 1; " + tooLittle(1, "nvidia.com/gpu"),
			"c: cordoned",
		}},
		{name: "equally frequent by name", clusters: []*Cluster{
			NewCluster("a").NotReady("Unreachable"), NewCluster("b").Nodes(NewNode("n")), NewCluster("c").Nodes(gpuNode()),
		}, want: "0/3 clusters available: 1 Insufficient nvidia.com/gpu, 1 never fits: Insufficient nvidia.com/gpu, 1 not ready (Unreachable).",
			details: []string{
				"a: not ready (Unreachable)",
				"b: never fits: Insufficient nvidia.com/gpu: " + tooLittle(1, "nvidia.com/gpu"),
				"c: Insufficient nvidia.com/gpu: Pods that must fit at once: 2, that would: 1; " + tooLittle(1, "nvidia.com/gpu"),
			}},
		{name: "chosen", clusters: []*Cluster{
			NewCluster("a").Cordoned(), NewCluster("b"), NewCluster("c").Nodes(NewNode("n").Has("nvidia.com/gpu", "8")),
		}, want: "c chosen, 2/3 clusters available: 1 cordoned.", details: []string{
			"c: chosen, score 0.750", "b: fits, score 0.500", "a: cordoned",
		}},
		{name: "all available", clusters: []*Cluster{NewCluster("a")}, want: "a chosen, 1/1 clusters available.",
			details: []string{"a: chosen, score 0.500"}},
		{name: "a list of clusters", among: []string{"b", "x"}, clusters: []*Cluster{NewCluster("a"), NewCluster("b").Cordoned()},
			want:    "0/3 clusters available: 1 cordoned, 1 not allowed for the Job's queue, 1 not registered.",
			details: []string{"a: not allowed for the Job's queue", "b: cordoned", "x: not registered"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			job := NewJob("j").Pods(2).Requests("nvidia.com/gpu", "1")
			got := placement.Place(placement.Request{Job: job.Obj(), Among: test.among}, objs(test.clusters))
			if got.Explain() != test.want {
				t.Errorf("got  %s\nwant %s", got.Explain(), test.want)
			}
			if diff := cmp.Diff(test.details, got.Details()); diff != "" {
				t.Errorf("details (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExplainIsBounded(t *testing.T) {
	clusters := []*Cluster{NewCluster("z").Cordoned()}
	for i := range 200 {
		clusters = append(clusters, NewCluster(fmt.Sprintf("c%03d", i)).NotReady(fmt.Sprintf("SomeReasonOfItsOwn%03d", i)))
	}
	got := placement.Place(placement.Request{Job: NewJob("j").Obj()}, objs(clusters)).Explain()
	if len(got) > 1024 {
		t.Errorf("%d bytes", len(got))
	}
	if accounted := clustersIn(t, got); accounted != 201 {
		t.Errorf("accounts for %d of 201: %s", accounted, got)
	}
	if !strings.Contains(got, "1 cordoned, ") || !strings.HasSuffix(got, " for other reasons.") {
		t.Errorf("got %s", got)
	}
}

func TestWaiting(t *testing.T) {
	place := func(clusters ...*Cluster) placement.Decision {
		job := NewJob("j").Pods(2).Requests("nvidia.com/gpu", "1")
		return placement.Place(placement.Request{Job: job.Obj()}, objs(clusters))
	}
	full, small := NewCluster("full").Nodes(gpuNode()), NewCluster("small").Nodes(NewNode("n"))
	if d := place(full, small); !d.MayFitLater() {
		t.Errorf("full: %t", d.MayFitLater())
	}
	if d := place(small); d.MayFitLater() {
		t.Errorf("small: %t", d.MayFitLater())
	}
	if d := place(small, NewCluster("away").NotReady("Unreachable")); !d.MayFitLater() {
		t.Errorf("away: %t", d.MayFitLater())
	}
}

// clustersIn adds up the numbers that an explanation accounts for.
func clustersIn(t *testing.T, explanation string) int {
	t.Helper()
	head, reasons, _ := strings.Cut(strings.TrimSuffix(explanation, "."), ": ")
	if _, after, chosen := strings.Cut(head, " chosen, "); chosen {
		head = after
	}
	var sum, total, n int
	if _, err := fmt.Sscanf(head, "%d/%d clusters available", &sum, &total); err != nil {
		t.Fatalf("%s: %v", explanation, err)
	}
	for reason := range strings.SplitSeq(reasons, ", ") {
		if _, err := fmt.Sscanf(reason, "%d", &n); reasons != "" && err != nil {
			t.Fatalf("%s: %s: %v", explanation, reason, err)
		} else if reasons != "" {
			sum += n
		}
	}
	if sum != total {
		t.Errorf("%d clusters are accounted for, of %d: %s", sum, total, explanation)
	}
	return sum
}

// What a Job lacks in a worker is kept while it waits, and is told: whatever names are in it, it's
// short.
func TestReasonsAreShort(t *testing.T) {
	clusters := []placement.Cluster{{Name: "a", NotReady: strings.Repeat("x", 1<<20)}}
	d := placement.Place(placement.Request{Job: &batchv1.Job{}}, clusters)
	if named := d.Named(); len(named) > 2<<10 || !strings.Contains(named, "a: not ready (xxx") {
		t.Errorf("%d bytes: %.200s", len(named), named)
	}
}

func TestNamedNamesFewClusters(t *testing.T) {
	few := placement.Decision{Rejections: []placement.Rejection{
		{Cluster: "east", Reason: placement.Insufficient, Message: "Insufficient cpu", Detail: "3 of 4"},
		{Cluster: "west", Reason: "Cordoned", Message: "cordoned"},
	}}
	want := "0/2 clusters available: 1 Insufficient cpu, 1 cordoned. (east: Insufficient cpu; west: cordoned)"
	if got := few.Named(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	many := placement.Decision{}
	for i := range 9 {
		many.Rejections = append(many.Rejections, placement.Rejection{Cluster: string(rune('a' + i)), Message: "cordoned"})
	}
	if got, want := many.Named(), "0/9 clusters available: 9 cordoned."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// The decision names the field that wasn't judged, whether the Job fits or not.
func TestWhatIsTooMuchIsNamed(t *testing.T) {
	for cpu, want := range map[string]string{
		"1":    "a chosen, 1/1 clusters available. ",
		"1000": "0/1 clusters available: 1 never fits: Insufficient cpu. ",
	} {
		job := NewJob("j").Pods(1).Requests("cpu", cpu).Obj()
		job.Spec.Template.Spec.NodeSelector = map[string]string{}
		for i := range 1000 {
			job.Spec.Template.Spec.NodeSelector[fmt.Sprint("key-", i)] = "x"
		}
		got := placement.Place(placement.Request{Job: job}, objs([]*Cluster{NewCluster("a").Nodes(NewNode("n").Has("cpu", "8"))}))
		want += "Judged without what would take too much work: spec.template.spec.nodeSelector."
		if got.Explain() != want {
			t.Errorf("got  %s\nwant %s", got.Explain(), want)
		}
	}
}

// An explanation looks at the clock while one cluster is judged, and ends with what is bounded.
func TestAnExplanationEnds(t *testing.T) {
	job := NewJob("j").Pods(1).Requests("cpu", "1").Obj()
	values := make([]string, 4000)
	for i := range values {
		values[i] = fmt.Sprint("value-", i)
	}
	job.Spec.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: values}},
		}}},
	}}
	nodes := make([]*NodeBuilder, 200)
	for i := range nodes {
		name := fmt.Sprint("n", i)
		nodes[i] = NewNode(name).Label(corev1.LabelHostname, name).Has("cpu", "8")
	}
	cluster := NewCluster("a").Nodes(nodes...)
	for expired, want := range map[bool]string{
		false: "0/1 clusters available: 1 never fits: node(s) didn't match Pod's node affinity/selector.",
		true:  "a chosen, 1/1 clusters available. Judged without what would take too much work: spec.template.spec.affinity.nodeAffinity.",
	} {
		request := placement.Request{Job: job, Expired: func() bool { return expired }}
		e := placement.Explain(request, placement.Subject{}, slices.Values(objs([]*Cluster{cluster})))
		if e.Message != want {
			t.Errorf("got  %s\nwant %s", e.Message, want)
		}
	}
}
