package placement_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/placement"
	. "github.com/jobferry/jobferry/pkg/placement/internal/capacity/capacitytest"
	"github.com/jobferry/jobferry/pkg/plugin/show"
)

// explain is Explain for a Job of 3 Pods, each with 2 CPUs.
func explain(request placement.Request, subject placement.Subject, clusters ...*Cluster) v1alpha1.PlacementExplanation {
	if request.Job == nil {
		request.Job = NewJob("j").Pods(3).Requests("cpu", "2").Obj()
	}
	return placement.Explain(request, subject, slices.Values(objs(clusters)))
}

// line is what a table would show of a worker.
func line(w v1alpha1.WorkerExplanation) string {
	text := fmt.Sprintf("%s %s", w.Name, w.Answer)
	if w.Placed {
		text += " placed"
	}
	if w.PodsNow != nil {
		text += fmt.Sprintf(" %d/%d", *w.PodsNow, *w.PodsNeeded)
	}
	for _, s := range w.Shortages {
		text += fmt.Sprintf(" short %s %s of %s", s.Resource, s.Short.String(), s.Requested.String())
	}
	return text + ": " + w.Message
}

func linesOf(e v1alpha1.PlacementExplanation) []string {
	all := []string{}
	for _, w := range e.Workers {
		all = append(all, line(w))
	}
	return all
}

// explained is a Job and its clusters, and what is said of them.
type explained struct {
	name     string
	request  placement.Request
	subject  placement.Subject
	clusters []*Cluster
	message  string
	want     []string
}

func (e explained) check(t *testing.T) {
	got := explain(e.request, e.subject, e.clusters...)
	if got.Message != e.message {
		t.Errorf("got  %s\nwant %s", got.Message, e.message)
	}
	if diff := cmp.Diff(e.want, linesOf(got)); diff != "" {
		t.Errorf("workers (-want +got):\n%s", diff)
	}
}

func freeNode() *NodeBuilder { return NewNode("n").Has("cpu", "8") }
func busyNode() *NodeBuilder { return NewNode("n").Has("cpu", "4").Used("cpu", "3") }
func halfNode() *NodeBuilder { return NewNode("o").Has("cpu", "4").Used("cpu", "2") }

func TestExplanation(t *testing.T) {
	free, busy, half := freeNode(), busyNode(), halfNode()
	for _, test := range []explained{
		{
			name:     "every answer, the best first",
			request:  placement.Request{PassedOver: map[string]string{"passed": "has a Job of this name that isn't ours"}},
			clusters: []*Cluster{NewCluster("away").NotReady("Unreachable"), NewCluster("busy").Nodes(busy, half), NewCluster("empty").Nodes(), NewCluster("fits").Nodes(free), NewCluster("passed"), NewCluster("small").Nodes(NewNode("n").Has("cpu", "1")), NewCluster("unlimited")},
			message:  "unlimited chosen, 2/7 clusters available: 1 Insufficient cpu, 1 has a Job of this name that isn't ours, 1 never fits: Insufficient cpu, 1 not ready (Unreachable), 1 without nodes.",
			want: []string{
				"unlimited NotChecked: fits: its capacity isn't checked",
				"fits FitsNow 3/3: all Pods fit now",
				"busy FitsLater 1/3: 1 of 3 Pods fit now, no further one: 0/2 nodes are available: 2 Insufficient cpu.",
				"empty Never 0/1: never fits: without nodes",
				"small Never 0/1 short cpu 1 of 2: never fits: 0/1 nodes are available: 1 Insufficient cpu.",
				"away Excluded: not ready (Unreachable)",
				"passed Excluded: has a Job of this name that isn't ours",
			},
		},
		{
			name:     "several reasons",
			clusters: []*Cluster{NewCluster("c").Nodes(busy, NewNode("p").Has("cpu", "8").Taint("gpu", corev1.TaintEffectNoSchedule), NewNode("q").Has("cpu", "8").Taint("gpu", corev1.TaintEffectNoSchedule))},
			message:  "0/1 clusters available: 1 Insufficient cpu.",
			want:     []string{"c FitsLater 0/2 short cpu 1 of 2: no Pod fits now: 0/3 nodes are available: 2 node(s) had untolerated taint(s), 1 Insufficient cpu."},
		},
		{
			name: "wider than the cluster", clusters: []*Cluster{NewCluster("c").Nodes(NewNode("n").Has("cpu", "4"))},
			message: "c chosen, 1/1 clusters available.",
			want:    []string{"c FitsNow 2/2: 2 of 3 Pods fit now, no further one: 0/1 nodes are available: 1 Insufficient cpu."},
		},
		{
			name: "an autoscaler", clusters: []*Cluster{NewCluster("full").Nodes(busy).Growing(0, "4"), NewCluster("grows").Nodes(busy, half).Growing(9, "4"),
				NewCluster("none").Nodes().Growing(2, "1")},
			message: "grows chosen, after scale-up, 1/3 clusters available: 1 Insufficient cpu, 1 never fits: Insufficient cpu.",
			want: []string{
				"grows FitsAfterScaleUp 1/3: 1 of 3 Pods fit now, 3 once the autoscaler has added nodes",
				"full FitsLater 0/2 short cpu 1 of 2: no Pod fits now: 0/1 nodes are available: 1 Insufficient cpu.",
				"none Never 0/1 short cpu 1 of 2: never fits: 0/1 nodes are available: 1 Insufficient cpu.",
			},
		},
	} {
		t.Run(test.name, test.check)
	}
}

// TestExplanationOfTheJob: what the Job is matters to what is said.
func TestExplanationOfTheJob(t *testing.T) {
	free, busy, half := freeNode(), busyNode(), halfNode()
	for _, test := range []explained{
		{
			name: "divided", subject: placement.Subject{Divisible: true}, clusters: []*Cluster{NewCluster("c").Nodes(busy, half)},
			message: "c chosen, 1/1 clusters available.",
			want:    []string{"c FitsNow 1/1: 1 of 3 Pods fit now, no further one: 0/2 nodes are available: 2 Insufficient cpu."},
		},
		{
			name: "placed", subject: placement.Subject{Placed: []string{"b"}}, clusters: []*Cluster{NewCluster("a").Nodes(free), NewCluster("b").Cordoned()},
			message: "Placed on b. If it were placed now: a chosen, 1/2 clusters available: 1 cordoned.",
			want:    []string{"b Excluded placed: cordoned", "a FitsNow 3/3: all Pods fit now"},
		},
		{
			name: "suspended", subject: placement.Subject{Suspended: true}, clusters: []*Cluster{NewCluster("a")},
			message: "Suspended: it's placed when it's resumed. If that were now: a chosen, 1/1 clusters available.",
			want:    []string{"a NotChecked: fits: its capacity isn't checked"},
		},
		{
			name: "a queue's workers", request: placement.Request{Among: []string{"a", "gone"}}, clusters: []*Cluster{NewCluster("a"), NewCluster("b")},
			message: "a chosen, 1/3 clusters available: 1 not allowed for the Job's queue, 1 not registered.",
			want:    []string{"a NotChecked: fits: its capacity isn't checked", "b Excluded: not allowed for the Job's queue", "gone Excluded: not registered"},
		},
		{
			name: "no Pods", request: placement.Request{Job: NewJob("j").Parallelism(0).Obj()}, clusters: []*Cluster{NewCluster("a").Nodes(busy)},
			message: "a chosen, 1/1 clusters available.", want: []string{"a FitsNow: fits: the Job runs no Pods"},
		},
		{name: "no cluster", message: "0/0 clusters available: no cluster is registered.", want: []string{}},
	} {
		t.Run(test.name, test.check)
	}
}

// The fields and plugins are in the answer for programs.
func TestExplanationNamesFieldsAndPlugins(t *testing.T) {
	selector, err := labels.Parse("region=eu")
	if err != nil {
		t.Fatal(err)
	}
	got := explain(placement.Request{Selector: selector, Recent: []string{"spec.x"}}, placement.Subject{},
		NewCluster("elsewhere"), NewCluster("old").Label("region", "eu").Dropping("spec.x"),
		NewCluster("small").Label("region", "eu").Nodes(NewNode("n").Has("cpu", "1")))
	want := map[string]string{
		"elsewhere": "SelectorMismatch metadata.annotations[jobferry.dev/cluster-selector]",
		"old":       "FeatureMissing spec.x",
		"small":     "NeverFits spec.template.spec.containers[].resources.requests NodeResourcesFit 1",
	}
	for _, w := range got.Workers {
		is := w.Reason + " " + w.Field
		for _, r := range w.NodeReasons {
			is += fmt.Sprintf(" %s %d", r.Plugin, r.Nodes)
		}
		if is != want[w.Name] {
			t.Errorf("%s: %q, want %q", w.Name, is, want[w.Name])
		}
	}
}

// A tenant learns nothing of what other tenants have: no labels of workers or nodes, no taints, no
// names of nodes; and of a worker that isn't for its namespace, nothing but that.
func TestExplanationKeepsOthersApart(t *testing.T) {
	mine, err := labels.Parse("team=secret-team")
	if err != nil {
		t.Fatal(err)
	}
	wish, err := labels.Parse("region=eu")
	if err != nil {
		t.Fatal(err)
	}
	node := NewNode("secret-node").Has("cpu", "1").Label("secret-label", "x").Taint("secret-taint", corev1.TaintEffectNoSchedule)
	closed, other := NewCluster("closed").Takes(mine).Nodes(node), NewCluster("other").Label("secret-key", "x")
	for _, e := range []v1alpha1.PlacementExplanation{
		explain(placement.Request{}, placement.Subject{}, closed, NewCluster("open").Nodes(node)),
		explain(placement.Request{Selector: wish}, placement.Subject{}, other),
	} {
		content, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(content), "secret") {
			t.Errorf("it tells %s", content)
		}
	}
	got := explain(placement.Request{}, placement.Subject{}, closed).Workers[0]
	want := v1alpha1.WorkerExplanation{Name: "closed", Answer: v1alpha1.PlacementExcluded, Reason: "NamespaceMismatch", Message: "not for Jobs of this namespace"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// What a worker said of a Job is shown in one short line, and an explanation has an end.
func TestExplanationIsBounded(t *testing.T) {
	evil := "\x1b[31mred\u202e" + strings.Repeat("long ", 1000)
	clusters, passed := []*Cluster{}, map[string]string{}
	for i := range 500 {
		name := fmt.Sprintf("c%03d", i)
		clusters, passed[name] = append(clusters, NewCluster(name)), fmt.Sprintf("%d%s", i, evil)
	}
	got := explain(placement.Request{PassedOver: passed}, placement.Subject{Placed: []string{"c499"}}, clusters...)
	content, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Workers) != 200 || got.OmittedWorkers != 300 || got.Workers[0].Name != "c499" || len(content) > 200<<10 {
		t.Errorf("%d workers, %d omitted, the first is %s, %d bytes", len(got.Workers), got.OmittedWorkers, got.Workers[0].Name, len(content))
	}
	for _, text := range []string{got.Message, got.Workers[1].Message} {
		if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) || len(text) > 1024 {
			t.Errorf("%d bytes: %q", len(text), text)
		}
	}
}

// A Job may request as many resources as it likes.
func TestShortagesAreBounded(t *testing.T) {
	var requests []string
	for i := range 500 {
		requests = append(requests, fmt.Sprintf("example.com/r%03d", i), "1")
	}
	got := explain(placement.Request{Job: NewJob("j").Pods(1).Requests(requests...).Obj()}, placement.Subject{}, NewCluster("c").Nodes(NewNode("n")))
	if n := len(got.Workers[0].Shortages); n != 10 {
		t.Errorf("%d shortages", n)
	}
	if n := len(got.Workers[0].Message); n > 1024 {
		t.Errorf("a message of %d bytes", n)
	}
}

// The example in docs/how-to/logs.md is what kubectl jobferry why prints for such workers.
func TestExampleOfTheDocs(t *testing.T) {
	docs, err := os.ReadFile("../../docs/how-to/logs.md")
	if err != nil {
		t.Fatal(err)
	}
	west := []*NodeBuilder{NewNode("free").Has("cpu", "8").Used("cpu", "3")}
	for i := range 11 {
		node := NewNode(fmt.Sprintf("n%02d", i)).Has("cpu", "8").Used("cpu", "6")
		if i < 7 {
			node.Taint("nvidia.com/gpu", corev1.TaintEffectNoSchedule)
		}
		west = append(west, node)
	}
	small := []*NodeBuilder{NewNode("a").Has("cpu", "2"), NewNode("b").Has("cpu", "2"), NewNode("c").Has("cpu", "1")}
	job := NewJob("train").Pods(3).Requests("cpu", "4").With(func(j *batchv1.Job) { j.Namespace = "team-a" }).Obj()
	e := explain(placement.Request{Job: job}, placement.Subject{},
		NewCluster("east").Nodes().Cordoned(), NewCluster("small").Nodes(small...), NewCluster("west").Nodes(west...))
	var printed strings.Builder
	start := metav1.NewTime(e.Time.Add(5 * time.Minute))
	e.Waiting = &v1alpha1.WaitingExplanation{Place: 2, Of: 7, Worker: "west", ExpectedStart: &start, Latest: true}
	if err := show.Why(&printed, &e, false, nil); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(docs), "```\n"+printed.String()+"```\n") {
		t.Errorf("it prints:\n%s", printed.String())
	}
}

// TestExplainsCost has three Pods of two CPUs.
func TestExplainsCost(t *testing.T) {
	e := explain(placement.Request{}, placement.Subject{},
		NewCluster("a").Costs("cpu", "0.03").Nodes(NewNode("n").Has("cpu", "64")), NewCluster("b").Nodes(NewNode("n").Has("cpu", "64")),
		NewCluster("c").Costs("cpu", "1").Nodes(NewNode("n").Has("cpu", "1")), NewCluster("d").Costs("cpu", "1").Cordoned())
	got := ""
	for _, w := range e.Workers {
		got += w.Name + ":" + w.CostPerHour + " "
	}
	if want := "b: a:0.18 c:6 d: "; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
