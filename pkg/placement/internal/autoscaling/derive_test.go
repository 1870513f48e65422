package autoscaling_test

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/placement/internal/autoscaling"
	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
	. "github.com/jobferry/jobferry/pkg/placement/internal/capacity/capacitytest"
	"github.com/jobferry/jobferry/pkg/util/costtest"
)

// pool is a NodePool as JSON, with fields of its spec and its template's spec.
func pool(name, spec, template string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q},"spec":{%s"template":{"metadata":{"labels":{"team":"ml"}},"spec":{%s"requirements":[
		{"key":"karpenter.sh/capacity-type","operator":"In","values":["spot","on-demand"]},
		{"key":"topology.kubernetes.io/zone","operator":"In","values":["a","b"]},
		{"key":"kubernetes.io/arch","operator":"In","values":["amd64"]},
		{"key":"cpus","operator":"Gte","values":["4"]}]}}}}`, name, spec, template)
}

// none was observed before.
var none *autoscaling.Observed

func observe(t *testing.T, before *autoscaling.Observed, nodes []*capacity.Node, pools ...string) *autoscaling.Observed {
	t.Helper()
	var read autoscaling.NodePools
	next, err := read.Add([]byte(`{"metadata":{},"items":[` + strings.Join(pools, ",") + `]}`))
	if err != nil || next != "" {
		t.Fatal(next, err)
	}
	return before.Update(read, "", nodes)
}

// ofPool is a node with 4 CPUs that a NodePool has, of which so many are taken for good.
func ofPool(pool, kind, taken string) *capacity.Node {
	n := there(NewNode(pool+kind+taken).Label(autoscaling.LabelNodePool, pool).Label(corev1.LabelInstanceTypeStable, kind).
		Label("kubernetes.io/arch", "amd64").Label("karpenter.sh/capacity-type", "spot").Label("topology.kubernetes.io/zone", "a"))[0]
	n.Idle = n.Allocatable.Add(capacity.ResourcesOf(Quantities("cpu", taken)), -1)
	return n
}

// What can be added by NodePools, by what their nodes show, and by what the WorkerCluster says of
// them.
func TestNodePools(t *testing.T) {
	nodes := []*capacity.Node{ofPool("general", "small", "2"), ofPool("general", "small", "500m"), ofPool("general", "odd", "0")}
	nodes[2].Object.Labels["kubernetes.io/arch"] = "arm64" // made before the NodePool was changed
	plain, limited := pool("general", "", ""), pool("general", `"limits":{"cpu":"16","nodes":"5"},`, "")
	said := []v1alpha1.NodeTemplate{template("general", "8", 4, "gpu=yes")}
	one, zoned := NewJob("one").Requests("cpu", "3500m"), NewJob("zoned").Requests("cpu", "1").NodeSelector("topology.kubernetes.io/zone", "b").
		NodeSelector("karpenter.sh/capacity-type", "on-demand").NodeSelector("team", "ml").NodeSelector("kubernetes.io/arch", "amd64")
	for name, row := range map[string]struct {
		pools []string
		nodes []*capacity.Node
		spec  *v1alpha1.Autoscaling
		job   *JobBuilder
		// nodes that may be added for it.
		want int
	}{
		"as large as the emptiest node":        {[]string{plain}, nodes, nil, one, 500},
		"no larger":                            {[]string{plain}, nodes, nil, NewJob("big").Requests("cpu", "3600m"), 0},
		"within limits, which count all of it": {[]string{limited}, nodes[:2], nil, one, 2},
		"within the limit of nodes":            {[]string{pool("general", `"limits":{"nodes":"3"},`, "")}, nodes[:2], nil, one, 1},
		"within the WorkerCluster's limits":    {[]string{plain}, nodes[:2], &v1alpha1.Autoscaling{Limits: Quantities("cpu", "12")}, one, 1},
		"in each zone that it allows":          {[]string{plain}, nodes, nil, zoned, 500},
		"in no other zone":                     {[]string{plain}, nodes, nil, NewJob("c").Requests("cpu", "1").NodeSelector("topology.kubernetes.io/zone", "c"), 0},
		"taints":                               {[]string{pool("general", "", `"taints":[{"key":"a","effect":"NoSchedule"}],`)}, nodes, nil, one, 0},
		"startup taints go away":               {[]string{pool("general", "", `"startupTaints":[{"key":"a","effect":"NoSchedule"}],`)}, nodes, nil, one, 500},
		"of unknown size":                      {[]string{plain}, nil, nil, one, 0},
		"of a size that is said":               {[]string{plain}, nil, &v1alpha1.Autoscaling{NodeTemplates: said}, NewJob("big").Requests("cpu", "8").NodeSelector("gpu", "yes"), 4},
		"a fixed number of nodes":              {[]string{pool("general", `"replicas":3,`, "")}, nodes, nil, one, 0},
		"not ready": {[]string{strings.TrimSuffix(plain, "}") + `,"status":{"conditions":[{"type":"Ready","status":"False"}]}}`},
			nodes, nil, one, 0},
		"limits that are none":      {[]string{pool("general", `"limits":{"cpu":"1e999999999"},`, "")}, nodes, nil, one, 0},
		"a number as a limit":       {[]string{pool("general", `"limits":{"cpu":12},`, "")}, nodes[:2], nil, one, 1},
		"not valid":                 {[]string{pool("Not Valid", "", ""), `{"metadata":{"name":"x"},"spec":{"limits":["many"]}}`, `7`}, nodes, nil, one, 0},
		"others that are said":      {[]string{plain}, nil, &v1alpha1.Autoscaling{NodeTemplates: []v1alpha1.NodeTemplate{template("own", "4", 2, "")}}, one, 2},
		"none that are said not to": {[]string{plain}, nodes, &v1alpha1.Autoscaling{NodeTemplates: []v1alpha1.NodeTemplate{template("general", "8", 0, "")}}, one, 0},
	} {
		t.Run(name, func(t *testing.T) {
			growth := autoscaling.GrowthOf(row.spec, observe(t, nil, row.nodes, row.pools...))
			if growth == nil {
				if row.want > 0 {
					t.Fatal("nothing can be added")
				}
				return
			}
			got := autoscaling.NewRoom(growth, row.nodes, nil).Nodes(shape(row.job), math.MaxInt64)
			if len(got) != row.want {
				t.Errorf("%d nodes, want %d", len(got), row.want)
			}
		})
	}
}

// A pool that has no nodes any more still has the size that it had; one without any is named.
func TestSizesAreRemembered(t *testing.T) {
	one := shape(NewJob("one").Requests("cpu", "3"))
	had := observe(t, nil, []*capacity.Node{ofPool("general", "small", "0")}, pool("general", "", ""), pool("gpu", "", ""))
	now := observe(t, had, nil, pool("general", "", ""), pool("gpu", "", ""))
	if n := len(autoscaling.NewRoom(autoscaling.GrowthOf(nil, now), nil, nil).Nodes(one, 3)); n < 3 {
		t.Errorf("%d nodes may be added, want 3 or more", n)
	}
	if why := now.Missing(nil); !strings.Contains(why, "NodePools gpu: no node of them has been seen") {
		t.Errorf("missing %q", why)
	}
	if why := now.Missing(&v1alpha1.Autoscaling{NodeTemplates: []v1alpha1.NodeTemplate{template("gpu", "4", 1, "")}}); why != "" {
		t.Errorf("missing %q though its size is said", why)
	}
	if again := observe(t, now, nil, pool("gpu", "", "")); len(again.Missing(nil)) == 0 || autoscaling.GrowthOf(nil, again) == nil {
		t.Error("the pool that is gone counts")
	}
	if why := observe(t, nil, nil).Missing(nil); !strings.Contains(why, "no NodePools") {
		t.Errorf("missing %q without pools", why)
	}
}

// What Karpenter tries first is taken first for Pods that wait.
func TestHeavierPoolsGoFirst(t *testing.T) {
	nodes := []*capacity.Node{ofPool("a", "k", "0"), ofPool("b", "k", "0")}
	o := observe(t, nil, nodes, pool("a", "", ""), pool("b", `"weight":10,`, ""), pool("c", "", ""))
	var names []string
	for i := range o.Pools {
		names = append(names, o.Pools[i].Name)
	}
	if !slices.Equal(names, []string{"b", "a", "c"}) {
		t.Errorf("in the order %v", names)
	}
}

const status = `
autoscalerStatus: Running
nodeGroups:
- name: https://www.googleapis.com/compute/v1/projects/p/zones/z/instanceGroups/general-grp
  health: {status: Healthy, cloudProviderTarget: 1, minSize: 0, maxSize: 2}
  scaleUp: {status: NoActivity}
- name: gpu
  health: {status: Healthy, maxSize: 9}
  scaleUp:
    status: Backoff
    backoffInfo: {errorCode: QUOTA_EXCEEDED}
`

// Cluster-autoscaler's status narrows what the WorkerCluster says, by name.
func TestNodeGroups(t *testing.T) {
	if _, err := autoscaling.ReadNodeGroups(status); err != nil {
		t.Fatal(err)
	}
	spec := &v1alpha1.Autoscaling{NodeTemplates: []v1alpha1.NodeTemplate{
		template("general-grp", "4", 9, ""), template("gpu", "4", 9, "gpu=yes"), template("unknown", "4", 3, "unknown=yes"),
	}}
	room := autoscaling.NewRoom(autoscaling.GrowthOf(spec, none.Update(nil, status, nil)), nil, nil)
	if n := len(room.Nodes(shape(NewJob("j").Requests("cpu", "4")), math.MaxInt64)); n != 2+0+3 {
		t.Errorf("%d nodes may be added, want 2 that its size allows, none in backoff and 3 that it doesn't know", n)
	}
	if groups, _ := autoscaling.ReadNodeGroups("Cluster-autoscaler status at 2020:\nCluster-wide:\n  Health: Healthy (ready=1)\n"); len(groups) > 0 {
		t.Errorf("a status of an older release has %v", groups)
	}
}

// A worker that lies with its NodePools and its status costs little, and nothing overflows.
func TestHostileAutoscalerIsCheap(t *testing.T) {
	begun := time.Now()
	var pools []string
	var nodes []*capacity.Node
	for i := range 10_000 {
		name := fmt.Sprintf("p%d", i)
		pools = append(pools, pool(name, `"limits":{"cpu":"1e18","memory":"1234567890123456789012e999999999","nodes":"1e18"},`, ""))
		for k := range 2 {
			n := ofPool(name, fmt.Sprint(k), "0")
			n.Allocatable = capacity.ResourcesOf(Quantities("cpu", "1e18", "memory", "1e18", "pods", "1e18"))
			n.Idle = n.Allocatable
			nodes = append(nodes, n)
		}
	}
	o := observe(t, nil, nodes, pools...)
	growth := autoscaling.GrowthOf(nil, o)
	templates := 0
	for _, g := range growth.Groups {
		templates += len(g.Templates)
	}
	if len(growth.Groups) > autoscaling.MaxPools || templates > 200 {
		t.Errorf("%d groups with %d templates", len(growth.Groups), templates)
	}
	room := autoscaling.NewRoom(growth, nodes, []capacity.Demand{{Shape: shape(NewJob("j").Requests("cpu", "1m")), Pods: math.MaxInt32}})
	if n := len(room.Nodes(shape(NewJob("one").Requests("cpu", "1")), math.MaxInt64)); n > 500 {
		t.Errorf("%d nodes", n)
	}
	groups, _ := autoscaling.ReadNodeGroups("nodeGroups: [" + strings.Repeat(`{name: a, health: {maxSize: 9223372036854775807}},`, 10_000) + "]")
	if len(groups) > autoscaling.MaxGroups || groups["a"].MaxNodes > 15_000 {
		t.Errorf("%d node groups, %+v", len(groups), groups["a"])
	}
	if took := time.Since(begun); took > time.Minute {
		t.Errorf("it took %s", took)
	}
}

// A NodePool has a bounded number of sizes, however many kinds of nodes come and go.
func TestManySizesOfANodePool(t *testing.T) {
	const most = 10 * 4 // sizes, each in two zones, spot or not
	var o *autoscaling.Observed
	for round := range 3 {
		var nodes []*capacity.Node
		for i := range 100 {
			nodes = append(nodes, ofPool("p", fmt.Sprint(round, "-", i), "0"))
		}
		o = observe(t, o, nodes, pool("p", "", ""))
		if n := len(autoscaling.GrowthOf(nil, o).Groups[0].Templates); n != most {
			t.Errorf("%d templates, want %d", n, most)
		}
	}
}

// A node of very many labels shows no size of its NodePool, which is named then: each node that may
// be added would have them all.
func TestNodesOfVeryManyLabels(t *testing.T) {
	for labels, isSized := range map[int]bool{250: true, 251: false} {
		node := ofPool("p", "k", "0")
		for i := len(node.Object.Labels); i < labels; i++ {
			node.Object.Labels[fmt.Sprint("label-", i)] = ""
		}
		o := observe(t, nil, []*capacity.Node{node}, pool("p", "", ""))
		templates := autoscaling.GrowthOf(nil, o).Groups[0].Templates
		if why := o.Missing(nil); isSized != (len(templates) > 0) || isSized != (why == "") || !isSized && !strings.Contains(why, "NodePools p: ") {
			t.Errorf("with %d labels there are %d templates, and %q is missing", labels, len(templates), why)
		}
	}
}

// A status of a few kilobytes doesn't become gigabytes.
func TestStatusWithAliases(t *testing.T) {
	text := "nodeGroups: []\na: &x \"" + strings.Repeat("a", 20_000) + "\"\nb: [" + strings.Repeat("*x,", 10_000) + "]"
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if groups, err := autoscaling.ReadNodeGroups(text); err == nil {
		t.Errorf("read as %v", groups)
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 20<<20 {
		t.Errorf("%d MiB were allocated for %d KiB", took>>20, len(text)>>10)
	}
	if _, err := autoscaling.ReadNodeGroups("nodeGroups:" + strings.Repeat(" ", 1<<20) + "[]"); err == nil {
		t.Error("a text of a megabyte is read")
	}
}

// What a status may cost is bounded by its length: keys that repeat, that are many, or values that
// are nothing.
func TestStatusOfManyKeysIsCheap(t *testing.T) {
	keys := &strings.Builder{}
	for i := range 40_000 {
		fmt.Fprintf(keys, "k%d:\n", i)
	}
	for name, text := range map[string]string{
		"one key, again and again": strings.Repeat("a:\n", 6_000),
		"the same in a group":      "nodeGroups:\n- {" + strings.Repeat("a: ,", 6_000) + "}",
		"keys":                     keys.String(),
		"nothing":                  "nodeGroups: [" + strings.Repeat(",", 400_000),
		"depth":                    "nodeGroups: " + strings.Repeat("[", 400_000),
		"dashes":                   "nodeGroups:\n" + strings.Repeat("- ", 200_000),
		"anchors":                  "nodeGroups: [" + strings.Repeat("&a ,", 100_000),
		"tags":                     "nodeGroups: [" + strings.Repeat("!!a ,", 90_000),
		"quotes":                   "nodeGroups: [" + strings.Repeat(`"",`, 100_000),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		groups, _ := autoscaling.ReadNodeGroups(text)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 100<<20 || len(groups) > autoscaling.MaxGroups {
			t.Errorf("%s: %d MiB were allocated for %d KiB, and %d groups read", name, took>>20, len(text)>>10, len(groups))
		}
	}
}

// As many groups as are read fit into the bounds.
func TestStatusOfAllGroups(t *testing.T) {
	text := &strings.Builder{}
	text.WriteString("time: 2026-11-25 10:00:00.000000000 +0000 UTC\nautoscalerStatus: Running\nnodeGroups:\n")
	for i := range autoscaling.MaxGroups {
		fmt.Fprintf(text, `- name: eks-group-%d-6ac9d0a1-4c1e-4d7b-8a5e-0b5f6a7c8d9e
  health:
    status: Healthy
    nodeCounts:
      registered:
        total: 1
        ready: 1
        notStarted: 0
      longUnregistered: 0
      unregistered: 0
    cloudProviderTarget: 1
    minSize: 0
    maxSize: %d
    lastProbeTime: "2026-11-25T10:00:00.000000000Z"
    lastTransitionTime: "2026-11-25T10:00:00.000000000Z"
  scaleUp:
    status: NoActivity
    lastProbeTime: "2026-11-25T10:00:00.000000000Z"
    lastTransitionTime: "2026-11-25T10:00:00.000000000Z"
  scaleDown:
    status: NoCandidates
    lastProbeTime: "2026-11-25T10:00:00.000000000Z"
    lastTransitionTime: "2026-11-25T10:00:00.000000000Z"
`, i, i)
	}
	groups, err := autoscaling.ReadNodeGroups(text.String())
	last := groups[fmt.Sprintf("eks-group-%d-6ac9d0a1-4c1e-4d7b-8a5e-0b5f6a7c8d9e", autoscaling.MaxGroups-1)]
	if err != nil || len(groups) != autoscaling.MaxGroups || last.MaxNodes != autoscaling.MaxGroups-1 {
		t.Errorf("%d groups of %d bytes, the last %+v: %v", len(groups), text.Len(), last, err)
	}
}

// A second NodePool of a name doesn't escape from what the admin says of that name.
func TestNodePoolOfTheSameName(t *testing.T) {
	said := &v1alpha1.Autoscaling{NodeTemplates: []v1alpha1.NodeTemplate{{Name: "p", MaxNodes: 2, Allocatable: Quantities("cpu", "4")}}}
	o := observe(t, nil, []*capacity.Node{ofPool("p", "k", "0")}, pool("p", "", ""), pool("p", `"weight":7,`, ""))
	if g := autoscaling.GrowthOf(said, o); len(g.Groups) != 1 || g.Groups[0].Nodes != 2 {
		t.Errorf("%+v", g.Groups)
	}
}

func FuzzReadNodePools(f *testing.F) {
	f.Add([]byte(`{"items":[` + pool("a", `"limits":{"cpu":"1e999999999"},`, "") + `]}`))
	f.Fuzz(func(_ *testing.T, page []byte) {
		var pools autoscaling.NodePools
		_, _ = pools.Add(page) // what is nonsense is left out
		o := none.Update(pools, "", []*capacity.Node{ofPool("a", "k", "0")})
		if g := autoscaling.GrowthOf(nil, o); g != nil {
			autoscaling.NewRoom(g, nil, nil).Nodes(shape(NewJob("one").Requests("cpu", "1")), 10)
		}
	})
}

// Nor is a NodePool of very many limits: what each node has of all is added up.
func TestNodePoolsOfVeryManyLimits(t *testing.T) {
	for limits, want := range map[int]int{15: 1, 16: 0} {
		p := pool("p", `"limits":{"cpu":1`+strings.Repeat(`,"x/%d":1`, limits)+`},`, "")
		for i := range limits {
			p = strings.Replace(p, "%d", fmt.Sprint(i), 1)
		}
		if got := len(observe(t, nil, nil, p).Pools); got != want {
			t.Errorf("%d limits: %d pools are read, want %d", limits+1, got, want)
		}
	}
}

// A NodePool of very many values isn't read: each node is compared with them.
func TestNodePoolsOfVeryManyValues(t *testing.T) {
	for values, want := range map[int]int{900: 1, 1000: 0} {
		requirement := `{"key":"a","operator":"NotIn","values":["x"` + strings.Repeat(`,"y"`, values) + `]},`
		p := strings.Replace(pool("p", "", ""), `"requirements":[`, `"requirements":[`+requirement, 1)
		if got := len(observe(t, nil, nil, p).Pools); got != want {
			t.Errorf("%d values: %d pools are read, want %d", values, got, want)
		}
	}
}

// Nor is one with a key or a value that no node has: it takes long to refuse one of megabytes.
func TestNodePoolsOfLongTexts(t *testing.T) {
	long := strings.Repeat("a", 64)
	for _, requirement := range []string{`{"key":"` + long + `","operator":"Exists"},`, `{"key":"a","operator":"NotIn","values":["` + long + `"]},`} {
		p := strings.Replace(pool("p", "", ""), `"requirements":[`, `"requirements":[`+requirement, 1)
		if got := len(observe(t, nil, nil, p).Pools); got != 0 {
			t.Errorf("%s is read", requirement)
		}
	}
}

// What is held of NodePools is little, on however many pages they come, and whatever they have.
func TestNodePoolsTakeLittle(t *testing.T) {
	var pools autoscaling.NodePools
	before := costtest.Heap()
	for page := range 200 {
		long := strings.Repeat("x", 100<<10)
		if page%2 == 0 {
			long = strings.Repeat("x", 1<<20)
		}
		p := pool(fmt.Sprint("p-", page), fmt.Sprintf(`"weight":%d,"limits":{%q:1},`, page, long), "")
		if _, err := pools.Add([]byte(`{"items":[` + p + `]}`)); err != nil {
			t.Fatal(err)
		}
	}
	if held := costtest.Heap() - before; held > 8<<20 || len(pools) != autoscaling.MaxPools || pools[0].Name != "p-199" {
		t.Errorf("%d MiB are held of %d NodePools, the first is %s", held>>20, len(pools), pools[0].Name)
	}
}

// Nodes that are gone take little, whatever labels they had, in however many NodePools.
func TestSizesOfLongLabels(t *testing.T) {
	const pools, kinds = autoscaling.MaxPools, 10
	var all []string
	for i := range pools {
		all = append(all, pool(fmt.Sprint("p", i), "", ""))
	}
	for labels, isSized := range map[int]bool{80: true, 200: false} {
		before := costtest.Heap()
		o := func() *autoscaling.Observed {
			var nodes []*capacity.Node
			for i := range pools * kinds {
				n := ofPool(fmt.Sprint("p", i%pools), fmt.Sprint(i), "0")
				for k := range labels {
					n.Object.Labels[fmt.Sprintf("%s/%d-%d", strings.Repeat("x", 253), k, i)] = strings.Repeat("y", 63)
				}
				nodes = append(nodes, n)
			}
			return observe(t, nil, nodes, all...)
		}()
		o = observe(t, o, nil, all...)
		held := costtest.Heap() - before
		if held > 8<<20 {
			t.Errorf("%d labels: %d MiB are held", labels, held>>20)
		}
		if got := o.Missing(nil) == ""; got != isSized {
			t.Errorf("%d labels: all NodePools have sizes: %t", labels, got)
		}
	}
}

func FuzzCostOfStatus(f *testing.F) {
	for _, part := range []string{",", "a: ,", "&a ,", "*a,", "!!a ,", `"",`, "[", "{", "? ", "[?,"} {
		f.Add("a: &a [x]\nnodeGroups: [", part, "]")
	}
	for _, part := range []string{"a:\n", "- ", "- a\n", "? a\n", "#\n", "---\n"} {
		f.Add("nodeGroups:\n", part, "")
	}
	costtest.Check(f, 512<<10, 100, func(text string) {
		_, _ = autoscaling.ReadNodeGroups(text) // what is nonsense is left out
	})
}

func FuzzCostOfKarpenter(f *testing.F) {
	f.Add(`{"items":[`+pool("a", "", ""), ",{}", "]}")
	f.Add(`{"items":[`+pool("a", "", ""), ","+pool("a", "", ""), "]}")
	f.Add(`{"items":[{"metadata":{"name":"a"},"spec":{"limits":{"cpu":`, "[", "")
	f.Add(`{"items":[{"metadata":{"name":"a"},"spec":{"limits":{"cpu":1`, "0", "}}}]}")
	f.Add(`{"metadata":{"uid":"a","labels":{"karpenter.sh/nodepool":"a"}},"spec":{"requirements":[{}`, ",{}", "]}}")
	f.Add(`{"metadata":{"uid":"a","labels":{"karpenter.sh/nodepool":"a"}},"spec":{"requirements":[{"values":[""`, `,""`, "]}]}}")
	costtest.Check(f, 64<<10, 1000, func(text string) {
		var pools autoscaling.NodePools
		_, _ = pools.Add([]byte(text)) // what is nonsense is left out
		if g := autoscaling.GrowthOf(nil, none.Update(pools, "", []*capacity.Node{ofPool("a", "k", "0")})); g != nil {
			autoscaling.NewRoom(g, nil, nil).Nodes(shape(NewJob("one").Requests("cpu", "1")), 10)
		}
		_, _ = autoscaling.ReadNodeClaim(watch.Modified, []byte(text))
	})
}
