package placement_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/jobferry/jobferry/pkg/api/preference"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/placement"
	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
	. "github.com/jobferry/jobferry/pkg/placement/internal/capacity/capacitytest"
	"github.com/jobferry/jobferry/pkg/placement/internal/change"
	"github.com/jobferry/jobferry/pkg/placement/internal/scheduling"
)

// world is a random request and clusters, with the nodes that they were made of.
type world struct {
	request  placement.Request
	clusters []*Cluster
	nodes    map[string][]*testNode
}

// testNode is a node as the checker sees it, in API quantities: nothing of it has gone through the
// package under test.
type testNode struct {
	builder       *NodeBuilder
	idle, free    corev1.ResourceList
	suited, there bool
}

func anyWorld(t *rapid.T) *world {
	w := &world{nodes: map[string][]*testNode{}}
	job := NewJob("j").Pods(rapid.Int32Range(0, 12).Draw(t, "completions")).
		Parallelism(rapid.Int32Range(0, 12).Draw(t, "parallelism")).
		Succeeded(rapid.Int32Range(0, 3).Draw(t, "succeeded"))
	job.Requests("cpu", fmt.Sprint(rapid.IntRange(0, 5).Draw(t, "cpu")), "memory", fmt.Sprint(rapid.IntRange(0, 5).Draw(t, "memory"), "Gi"))
	ssd := rapid.Bool().Draw(t, "needs ssd")
	if ssd {
		job.NodeSelector("disk", "ssd")
	}
	tolerant := rapid.Bool().Draw(t, "tolerates")
	if tolerant {
		job.Tolerates("reserved")
	}
	w.request.Job = job.Obj()
	if rapid.Bool().Draw(t, "selective") {
		w.request.Selector = labels.SelectorFromSet(labels.Set{"region": "eu"})
	}
	if value := rapid.SampledFrom([]string{"", "region=us; region=eu", "region=eu; region=us after 5m", "region=eu after 1m"}).Draw(t, "preference"); value != "" {
		p, err := preference.Parse(map[string]string{v1alpha1.AnnotationClusterPreference: value})
		if err != nil {
			t.Fatal(err)
		}
		w.request.Preference, w.request.Now = p, w.request.Since.Add(time.Duration(rapid.IntRange(0, 10).Draw(t, "waited"))*time.Minute)
	}
	w.request.Among = rapid.SampledFrom([][]string{nil, nil, {"c1", "c0", "c9"}}).Draw(t, "among")
	for i := range rapid.IntRange(0, 5).Draw(t, "clusters") {
		w.addCluster(t, fmt.Sprint("c", i), ssd, tolerant)
	}
	return w
}

func (w *world) addCluster(t *rapid.T, name string, ssd, tolerant bool) {
	cluster := NewCluster(name).Weight(rapid.Int32Range(0, 3).Draw(t, "weight")).
		Label("region", rapid.SampledFrom([]string{"eu", "us"}).Draw(t, "region"))
	switch rapid.IntRange(0, 9).Draw(t, "state") {
	case 0:
		cluster.NotReady(rapid.SampledFrom([]string{"Unreachable", "Connecting"}).Draw(t, "reason"))
	case 1:
		cluster.Cordoned()
	case 2:
		w.clusters = append(w.clusters, cluster)
		return
	}
	var builders []*NodeBuilder
	for i := range rapid.IntRange(0, 4).Draw(t, "nodes") {
		node := anyNode(t, fmt.Sprint("n", i), ssd, tolerant)
		w.nodes[name] = append(w.nodes[name], node)
		builders = append(builders, node.builder)
	}
	w.clusters = append(w.clusters, cluster.Nodes(builders...))
}

func anyNode(t *rapid.T, name string, ssd, tolerant bool) *testNode {
	amount := func(what string, most int) int { return rapid.IntRange(0, most).Draw(t, what) }
	has := []string{"cpu", fmt.Sprint(amount("cpu", 8)), "memory", fmt.Sprint(amount("memory", 8), "Gi"), "pods", fmt.Sprint(amount("pods", 8))}
	lasts := []string{"cpu", fmt.Sprint(amount("cpu for good", 2)), "pods", fmt.Sprint(amount("Pods for good", 1))}
	used := []string{"cpu", fmt.Sprint(amount("cpu in use", 3)), "memory", fmt.Sprint(amount("memory in use", 3), "Gi"), "pods", fmt.Sprint(amount("Pods", 3))}
	n := &testNode{builder: NewNode(name).Has(has...).UsedForGood(lasts...).Used(used...), suited: true, there: true}
	n.idle = minus(Quantities(has...), Quantities(lasts...))
	n.free = minus(n.idle, Quantities(used...))
	switch rapid.IntRange(0, 5).Draw(t, "peculiarity") {
	case 0:
		n.builder.Unschedulable()
		n.there = false
	case 1:
		n.builder.Taint("reserved", corev1.TaintEffectNoSchedule)
		n.suited = tolerant
	case 2:
		n.builder.Label("disk", "ssd")
		return n
	}
	n.suited = n.suited && !ssd
	return n
}

func (w *world) objs() []placement.Cluster { return objs(w.clusters) }

var sameDecision = []cmp.Option{cmpopts.IgnoreUnexported(placement.Candidate{}), cmpopts.EquateEmpty()}

func TestOrderOfInputIsIrrelevant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := anyWorld(t)
		want := placement.Place(w.request, w.objs())
		shuffled := rapid.Permutation(w.objs()).Draw(t, "shuffled")
		for i := range shuffled {
			if shuffled[i].Capacity != nil && len(shuffled[i].Capacity.Nodes) > 0 {
				var nodes []*capacity.Node
				for _, n := range rapid.Permutation(shuffled[i].Capacity.Nodes).Draw(t, "nodes") {
					nodes = append(nodes, n.Node)
				}
				shuffled[i].Capacity = scheduling.NewPods(func(change.Change) {}).Snapshot(capacity.NewCapacity(nodes), types.NamespacedName{})
			}
		}
		if diff := cmp.Diff(want, placement.Place(w.request, shuffled), sameDecision...); diff != "" {
			t.Fatalf("(-in order +shuffled):\n%s", diff)
		}
	})
}

// A Job goes where it's wanted by now, and to a cluster of a later step only if none of an earlier
// one fits.
func TestStepsAreHeeded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := anyWorld(t)
		w.request.Among = nil
		d := placement.Place(w.request, w.objs())
		for _, c := range w.objs() {
			step, opens := w.request.Preference.StepOf(c.Labels, w.request.Since)
			may := step != preference.None && !opens.After(w.request.Now)
			i := slices.IndexFunc(d.Candidates, func(o placement.Candidate) bool { return o.Cluster == c.Name })
			if i >= 0 && (!may || step < d.Candidates[0].Step) {
				t.Fatalf("%s is of step %d, which opens at %s: %v", c.Name, step, opens, d.Details())
			}
		}
	})
}

func TestEveryClusterIsAccountedForOnce(t *testing.T) {
	check := t
	rapid.Check(t, func(t *rapid.T) {
		w := anyWorld(t)
		d := placement.Place(w.request, w.objs())
		verdicts := map[string]int{}
		for _, c := range d.Candidates {
			verdicts[c.Cluster]++
		}
		for _, r := range d.Rejections {
			verdicts[r.Cluster]++
		}
		want := map[string]int{}
		for _, c := range w.objs() {
			want[c.Name] = 1
		}
		for _, name := range w.request.Among {
			want[name] = 1
		}
		if diff := cmp.Diff(want, verdicts); diff != "" {
			t.Fatalf("verdicts (-want +got):\n%s", diff)
		}
		if len(want) > 0 && clustersIn(check, d.Explain()) != len(want) {
			t.Fatalf("%d clusters: %s", len(want), d.Explain())
		}
		if len(d.Details()) != len(want) {
			t.Fatalf("%d clusters: %v", len(want), d.Details())
		}
	})
}

// TestFitsExactlyWhatFits has a checker pack each Job's Pods, one after the other, into every
// cluster that was judged by its capacity. Pods of one Job are alike, so that first fit is exact.
func TestFitsExactlyWhatFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := anyWorld(t)
		d := placement.Place(w.request, w.objs())
		for _, c := range d.Candidates {
			if nodes, known := w.nodes[c.Cluster]; known && !w.fits(nodes) {
				t.Fatalf("%s doesn't fit: %v", c.Cluster, d.Details())
			}
		}
		for _, r := range d.Rejections {
			judged := r.Reason == placement.Insufficient || r.Reason == placement.NeverFits
			if judged && w.fits(w.nodes[r.Cluster]) {
				t.Fatalf("%s fits: %v", r.Cluster, d.Details())
			}
		}
	})
}

// fits packs what the Job needs at once. A Job that wants nothing fits.
func (w *world) fits(nodes []*testNode) bool {
	want := int(placement.PodsWanted(w.request.Job))
	idle := w.pack(nodes, want, func(n *testNode) corev1.ResourceList { return n.idle })
	need := max(min(want, idle), min(want, 1))
	return w.pack(nodes, need, func(n *testNode) corev1.ResourceList { return n.free }) == need
}

func (w *world) pack(nodes []*testNode, count int, pick func(*testNode) corev1.ResourceList) int {
	unit := w.request.Job.Spec.Template.Spec.Containers[0].Resources.Requests.DeepCopy()
	unit[corev1.ResourcePods] = resource.MustParse("1")
	packed := 0
	for _, n := range nodes {
		if !n.suited || !n.there {
			continue
		}
		for left := minus(pick(n), unit); packed < count && nonNegative(left, unit); left = minus(left, unit) {
			packed++
		}
	}
	return packed
}

func minus(a, b corev1.ResourceList) corev1.ResourceList {
	difference := a.DeepCopy()
	for name, quantity := range b {
		left := difference[name]
		left.Sub(quantity)
		difference[name] = left
	}
	return difference
}

// nonNegative looks at the resources that a Pod asks for: others on the node don't concern it.
func nonNegative(left, unit corev1.ResourceList) bool {
	for name, quantity := range left {
		if asked := unit[name]; !asked.IsZero() && quantity.Sign() < 0 {
			return false
		}
	}
	return true
}
