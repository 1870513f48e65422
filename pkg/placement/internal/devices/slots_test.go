package devices

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
	"github.com/jobferry/jobferry/pkg/placement/internal/scheduling"
	"github.com/jobferry/jobferry/pkg/util/costtest"
)

// oneByOne has all Pods tried one after the other: devices that are known, and nodes that are
// alike, are of no use.
type oneByOne struct{ *Devices }

func (o oneByOne) Trial(namespace string, spec *corev1.PodSpec, at scheduling.Moment, charge func(int) int) scheduling.DeviceTrial {
	if t := o.Devices.Trial(namespace, spec, at, charge); t != nil {
		return coupledTrial{t}
	}
	return nil
}

type coupledTrial struct{ scheduling.DeviceTrial }

func (coupledTrial) Coupled() bool                   { return true }
func (c coupledTrial) Clone() scheduling.DeviceTrial { return coupledTrial{c.DeviceTrial.Clone()} }

// What is counted per node is what comes of trying one Pod after the other, whatever was known
// before.
func TestSlotsAreWhatTrialsFind(t *testing.T) {
	for seed := range uint64(300) {
		chance := rand.New(rand.NewPCG(seed, 1))
		o, nodes := someDevices(chance)
		known := New(o)
		for range 4 {
			spec := someDevicesWanted(chance)
			wanted := 1 + chance.Int64N(12)
			fast := judgeDevices(nodes, known, spec, wanted)
			slow := judgeDevices(nodes, oneByOne{New(o)}, spec, wanted)
			if fast.Verdict != slow.Verdict || fast.Now != slow.Now || fast.Idle != slow.Idle {
				t.Fatalf("seed %d: %v, %d now, %d idle, %v; one by one %v, %d now, %d idle, %v", seed,
					fast.Verdict, fast.Now, fast.Idle, fast.Reasons, slow.Verdict, slow.Now, slow.Idle, slow.Reasons)
			}
			node := fmt.Sprint("n", chance.IntN(len(nodes)))
			o.allocated(node, fmt.Sprint("d", chance.IntN(4)), "ends")
			known = known.With(o)
		}
	}
}

func judgeDevices(nodes []*corev1.Node, d scheduling.Devices, spec corev1.PodSpec, wanted int64) scheduling.Answer {
	snapshot := scheduling.NewSnapshot(nodes, nil, nil)
	snapshot.Devices = d
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "job"}}
	job.Spec.Template.Spec = spec
	return scheduling.NewJob(job).Judge(snapshot, wanted)
}

func someDevices(chance *rand.Rand) (Objects, []*corev1.Node) {
	o := worker()
	o.Slices = nil
	var nodes []*corev1.Node
	for n := range 1 + chance.IntN(6) {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", n)}}
		node.Status.Allocatable = corev1.ResourceList{"pods": resource.MustParse(fmt.Sprint(1 + chance.IntN(5)))}
		nodes = append(nodes, node)
		slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node.Name}, Spec: resourcev1.ResourceSliceSpec{
			Driver: "example.com", NodeName: ptr.To(node.Name), Pool: resourcev1.ResourcePool{Name: node.Name, ResourceSliceCount: 1},
		}}
		for d := range chance.IntN(4) {
			slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{
				Name:       fmt.Sprint("d", d),
				Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"model": {IntValue: ptr.To(chance.Int64N(2))}},
			})
		}
		if len(slice.Spec.Devices) > 0 {
			o.Slices = append(o.Slices, slice)
		}
	}
	for _, count := range []int64{1, 2} {
		claim := oneDevice("").Spec
		claim.Devices.Requests[0].Exactly.Count = count
		claim.Devices.Constraints = []resourcev1.DeviceConstraint{{MatchAttribute: ptr.To(resourcev1.FullyQualifiedName("example.com/model"))}}
		template := &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint("alike-", count)}}
		template.Spec.Spec = claim
		o.Templates = append(o.Templates, template)
	}
	return o, nodes
}

func someDevicesWanted(chance *rand.Rand) corev1.PodSpec {
	spec := corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}}
	if chance.IntN(2) == 0 {
		asking(fmt.Sprint(1 + chance.IntN(2)))(&spec)
		return spec
	}
	name := fmt.Sprint("alike-", 1+chance.IntN(2))
	spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: &name}}
	return spec
}

// What is known of a node holds for those that are alike, and after a change elsewhere.
func TestNodesThatAreAlike(t *testing.T) {
	o := worker()
	d := New(o)
	if a, b := d.now.alike["a"], d.now.alike["b"]; a != b {
		t.Error("nodes with the same devices aren't alike")
	}
	o.allocated("a", "gpu-0", "ends")
	d = d.With(o)
	if a, b := d.now.alike["a"], d.now.alike["b"]; a == b {
		t.Error("a node with one device less is like the other")
	}
	if a, b := d.idle.alike["a"], d.idle.alike["b"]; a != b {
		t.Error("nodes whose Pods end aren't alike in an idle worker")
	}
	known := d.memo
	o.Slices = append([]*resourcev1.ResourceSlice{}, o.Slices...)
	o.Slices[0] = o.Slices[0].DeepCopy()
	if d = d.With(o); d.memo != known {
		t.Error("what is known is lost with a change of a slice")
	}
	o.Classes = []*resourcev1.DeviceClass{o.Classes[0].DeepCopy()}
	if d = d.With(o); d.memo == known {
		t.Error("what is known outlives a change of the classes")
	}
}

// A pool that several nodes share couples them.
func TestPoolOfTwoNodes(t *testing.T) {
	o := worker()
	if trial := New(o).Trial("ns", podSpec(asking("1")), scheduling.Now, nil); trial.Coupled() {
		t.Error("nodes with devices of their own are coupled")
	}
	o.Slices[1].Spec.Pool.Name = o.Slices[0].Spec.Pool.Name
	if trial := New(o).Trial("ns", podSpec(asking("1")), scheduling.Now, nil); !trial.Coupled() {
		t.Error("nodes that share a pool aren't coupled")
	}
}

func podSpec(change func(*corev1.PodSpec)) *corev1.PodSpec {
	spec := &corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}}
	change(spec)
	return spec
}

// hostile workers are as expensive as can be: each node is another, with very many devices,
// selectors that take as long as they may, or claims with too many combinations.
var hostile = map[string]func(*Objects){
	"selectors that take long": func(o *Objects) {
		deep := `device.attributes["example.com"].all(a, true)`
		for _, name := range []string{"b", "c", "d"} {
			deep = fmt.Sprintf(`device.attributes["example.com"].all(%s, %s)`, name, deep)
		}
		o.Classes[0].Spec.Selectors[0].CEL.Expression = deep
		for _, s := range o.Slices {
			for i := range s.Spec.Devices {
				for a := range 30 {
					s.Spec.Devices[i].Attributes[resourcev1.QualifiedName(fmt.Sprint("a", a))] = resourcev1.DeviceAttribute{BoolValue: ptr.To(true)}
				}
			}
		}
	},
	"very many selectors": func(o *Objects) {
		for i := range 3000 {
			o.Classes[0].Spec.Selectors = append(o.Classes[0].Spec.Selectors, resourcev1.DeviceSelector{
				CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf(`device.driver != "%d"`, i)},
			})
		}
	},
	"selectors that don't compile": func(o *Objects) { o.Classes[0].Spec.Selectors[0].CEL.Expression = "no such variable" },
	"very many devices": func(o *Objects) {
		for _, s := range o.Slices {
			for i := range 2000 {
				s.Spec.Devices = append(s.Spec.Devices, resourcev1.Device{Name: fmt.Sprint("more-", i)})
			}
		}
	},
	"very many combinations": func(o *Objects) {
		o.Classes[0].Spec.Selectors = nil
		for _, s := range o.Slices {
			for i := range 30 {
				s.Spec.Devices = append(s.Spec.Devices, resourcev1.Device{Name: fmt.Sprint("more-", i), Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"index": {IntValue: ptr.To(int64(i % 7))}}})
			}
		}
		o.Templates[0].Spec.Spec.Devices.Requests[0].Exactly.Count = 8
		o.Templates[0].Spec.Spec.Devices.Constraints = []resourcev1.DeviceConstraint{{DistinctAttribute: ptr.To(resourcev1.FullyQualifiedName("example.com/index"))}}
	},
	"nodes that share all devices": func(o *Objects) {
		for _, s := range o.Slices {
			s.Spec.NodeName, s.Spec.AllNodes = nil, ptr.To(true)
		}
	},
}

func hostileWorker(change func(*Objects)) (Objects, []*corev1.Node) {
	o := worker()
	o.Slices = nil
	var nodes []*corev1.Node
	for n := range 500 {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", n)}}
		node.Status.Allocatable = corev1.ResourceList{"pods": resource.MustParse("110")}
		nodes = append(nodes, node)
		o.Slices = append(o.Slices, &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node.Name}, Spec: resourcev1.ResourceSliceSpec{
			Driver: "example.com", NodeName: ptr.To(node.Name), Pool: resourcev1.ResourcePool{Name: node.Name, ResourceSliceCount: 1},
			Devices: []resourcev1.Device{{Name: "gpu", Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
				"node": {IntValue: ptr.To(int64(n))}, // no two are alike
			}}},
		}})
	}
	o.Templates = []*resourcev1.ResourceClaimTemplate{{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "t"}}}
	o.Templates[0].Spec.Spec = oneDevice("").Spec
	change(&o)
	return o, nodes
}

var byTemplate = podSpec(func(s *corev1.PodSpec) {
	s.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: ptr.To("t")}}
})

// A worker can't make its answers take long. Without bounds, each of these takes minutes or more.
func TestHostileWorkers(t *testing.T) {
	for name, change := range hostile {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			o, nodes := hostileWorker(change)
			d := New(o)
			longest := time.Duration(0)
			for range 3 {
				began := time.Now()
				judgeDevices(nodes, d, *byTemplate, 1000)
				longest = max(longest, time.Since(began))
				d = d.With(o)
			}
			if longest > time.Minute { // some tenths on an idle machine
				t.Errorf("the longest answer took %v", longest)
			}
			if len(d.memo.answers) > maxAnswers || len(d.memo.numbers) > maxNumbers {
				t.Errorf("%d answers of %d nodes are kept", len(d.memo.answers), len(d.memo.numbers))
			}
		})
	}
}

// BenchmarkHostile asks one worker that does its worst.
func BenchmarkHostile(b *testing.B) {
	for name, change := range hostile {
		b.Run(name, func(b *testing.B) {
			o, nodes := hostileWorker(change)
			b.ReportAllocs()
			for b.Loop() {
				judgeDevices(nodes, New(o), *byTemplate, 1000)
			}
		})
	}
}

// Each request of a claim is work, also where no device is looked at.
func TestManyRequestsAreWork(t *testing.T) {
	o, nodes := hostileWorker(func(o *Objects) {
		spec := &o.Templates[0].Spec.Spec
		spec.Devices.Requests[0].Exactly.Selectors, o.Classes[0].Spec.Selectors = nil, nil
		spec.Devices.Requests = slices.Repeat(spec.Devices.Requests, 32)
		for i := range spec.Devices.Requests {
			spec.Devices.Requests[i].Name = fmt.Sprint("r", i)
		}
	})
	const claims = 90
	spec := podSpec(func(s *corev1.PodSpec) {
		for i := range claims {
			s.ResourceClaims = append(s.ResourceClaims, corev1.PodResourceClaim{Name: fmt.Sprint(i), ResourceClaimTemplateName: ptr.To("t")})
		}
	})
	found := New(o).Trial("ns", spec, scheduling.Now, nil).(*trial)
	found.Slots(&capacity.Node{Object: nodes[0]}, 1)
	if work := mostWork - *found.left; work < claims*32*requestWork {
		t.Errorf("work %d for %d requests", work, claims*32)
	}
}

// A large template that many claims of a Pod have is packed and hashed once for all of them.
func TestATemplateIsHashedOnce(t *testing.T) {
	o, _ := hostileWorker(func(o *Objects) {
		requests := o.Templates[0].Spec.Spec.Devices.Requests
		requests[0].Exactly.Tolerations = slices.Repeat([]resourcev1.DeviceToleration{{Value: strings.Repeat("x", maxName)}}, 16)
		o.Templates[0].Spec.Spec.Devices.Requests = slices.Repeat(requests, 12)
	})
	cost := func(claims int) uint64 {
		spec := podSpec(func(s *corev1.PodSpec) {
			for i := range claims {
				s.ResourceClaims = append(s.ResourceClaims, corev1.PodResourceClaim{Name: fmt.Sprint(i), ResourceClaimTemplateName: ptr.To("t")})
			}
		})
		trial := New(o).Trial("ns", spec, scheduling.Now, nil).(*trial)
		trial.wish(nil) // what is found out about selectors is kept
		return costtest.Of(func() { trial.wish(nil) })
	}
	if one, many := cost(1), cost(1000); many > 5*one {
		t.Errorf("%d KiB for a claim, and %d KiB for 1,000", one>>10, many>>10)
	}
}

// Templates with very many alternatives are read once for quotas, however many claims have each,
// and as work. Classes that aren't there take nothing.
func TestATemplateIsCountedOnce(t *testing.T) {
	const templates, requests, alternatives = 90, 32, 8
	o, _ := hostileWorker(func(o *Objects) {
		for i := range templates {
			template := o.Templates[0].DeepCopy()
			template.Name = fmt.Sprint(i)
			r := resourcev1.DeviceRequest{}
			for k := range alternatives {
				r.FirstAvailable = append(r.FirstAvailable, resourcev1.DeviceSubRequest{DeviceClassName: fmt.Sprint(i, "-", k)})
			}
			template.Spec.Spec.Devices.Requests = slices.Repeat([]resourcev1.DeviceRequest{r}, requests)
			o.Templates = append(o.Templates, template)
		}
	})
	d := New(o)
	spec := podSpec(func(s *corev1.PodSpec) {
		for i := range 10 * templates {
			s.ResourceClaims = append(s.ResourceClaims, corev1.PodResourceClaim{ResourceClaimTemplateName: ptr.To(fmt.Sprint(i % templates))})
		}
	})
	read := 0
	cost := costtest.Of(func() { d.Claimed("ns", spec, func(requests int) { read += requests }) })
	if read != templates*requests*(1+alternatives) || cost > 1<<20 {
		t.Errorf("%d requests of %d templates are read, with %d KiB", read, templates, cost>>10)
	}
}

// What is asked for is read anew for nodes that lack other resources, and is work each time.
func TestWishesAreWork(t *testing.T) {
	o, _ := hostileWorker(func(o *Objects) {
		spec := &o.Templates[0].Spec.Spec
		selectors := spec.Devices.Requests[0].Exactly
		selectors.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: strings.Repeat(" ", 9_000) + "true"}}}
		selectors.Selectors = slices.Repeat(selectors.Selectors, 32)
		spec.Devices.Requests = slices.Repeat(spec.Devices.Requests, 4)
	})
	trial := New(o).Trial("ns", byTemplate, scheduling.Now, nil).(*trial)
	trial.wish(nil) // what is found out about selectors is kept
	before := *trial.left
	if trial.wish(nil); before-*trial.left < 4*32*9_000/hashedPerWork {
		t.Errorf("work %d", before-*trial.left)
	}
	*trial.left = 0
	if cost := costtest.Of(func() { trial.wish(nil) }); cost > 64<<10 {
		t.Errorf("without work that is left, it took %d KiB", cost>>10)
	}
}

// Whoever uses an allowance up gets none back by a change of the worker's classes.
func TestAChangeOfClassesGivesNoWorkBack(t *testing.T) {
	o, nodes := hostileWorker(hostile["very many combinations"])
	d := New(o)
	judgeDevices(nodes, d, *byTemplate, 1000)
	used := d.memo.allowances.left("ns")
	o.Classes = append(slices.Clone(o.Classes), &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "next"}})
	next := d.With(o)
	if left := next.memo.allowances.left("ns"); next.memo == d.memo || left > used || used >= mostWork {
		t.Errorf("%d units of work are left, and %d after the change", used, left)
	}
}

// A namespace that uses up its allowance leaves the others theirs. If two do, it's the worker.
func TestAllowancesOfNamespaces(t *testing.T) {
	a := newAllowances()
	useUp := func(namespace string, times int) {
		for range times {
			a.allow(namespace)
			a.usedUp(namespace)
		}
	}
	if useUp("one", 20); a.left("one") > 2*leastWork || a.left("other") != mostWork {
		t.Errorf("left: %d, and %d for another one", a.left("one"), a.left("other"))
	}
	useUp("two", 1)
	if two, left := a.left("two"), a.allow("other"); left != two {
		t.Errorf("left: %d, and %d for one that comes", two, left)
	}
	for range 20 {
		a.allow("other")
	}
	if a.left("other") != mostWork {
		t.Errorf("left: %d after trials that took little", a.left("other"))
	}
	for i := range 2 * maxAllowances {
		useUp(fmt.Sprint(i), 1)
	}
	if n := len(a.of); n > maxAllowances+1 {
		t.Errorf("%d are kept", n)
	}
	for range 2 * mostWork / agedWork { // Jobs of the others are gone
		a.allow("stays")
	}
	if len(a.of) > 0 || a.left("one") != mostWork {
		t.Errorf("left: %d; %d are kept", a.left("one"), len(a.of))
	}
}

// Pools that an older release is still publishing are completed without a copy of their devices.
func TestIncompletePoolsAreCheap(t *testing.T) {
	var all []*resourcev1.ResourceSlice
	for i := range 1000 {
		s := &resourcev1.ResourceSlice{Spec: resourcev1.ResourceSliceSpec{Driver: "d", Pool: resourcev1.ResourcePool{Name: fmt.Sprint(i), ResourceSliceCount: 2}}}
		for range 128 {
			s.Spec.Devices = append(s.Spec.Devices, resourcev1.Device{Name: "device"})
		}
		all = append(all, s)
	}
	if cost := costtest.Of(func() { completed(all) }); cost > 2<<20 {
		t.Errorf("1,000 slices take %d KiB", cost>>10)
	}
}

// A Job that is judged lightly searches no longer than it can pay for, and pays for a selector
// before that is compiled.
func TestAJobPaysForDevicesFirst(t *testing.T) {
	const can = 5000
	long := fmt.Sprintf(`device.driver != %q`, strings.Repeat("x", 9000))
	for name, row := range map[string]struct {
		change func(*Objects)
		beyond int // what it can pay for: what it was asked to
	}{
		"a search":        {hostile["very many combinations"], 10},
		"a long selector": {func(o *Objects) { o.Classes[0].Spec.Selectors[0].CEL.Expression = long }, len(long) * compileByteWork},
	} {
		o, nodes := hostileWorker(row.change)
		d, left := New(o), can
		func() {
			defer func() { _ = recover() }()
			d.Trial("ns", byTemplate, scheduling.Now, func(work int) int {
				if left -= work; left < 0 {
					panic("no work is left")
				}
				return left
			}).Slots(&capacity.Node{Object: nodes[0]}, 1)
		}()
		if _, compiled := d.memo.costs.Get(long); left >= 0 || left < -row.beyond || compiled {
			t.Errorf("%s: %d are left, compiled: %t", name, left, compiled)
		}
	}
}
