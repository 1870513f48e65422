package devices

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/placement/internal/scheduling"
	"github.com/jobferry/jobferry/pkg/util/costtest"
)

// endless are selectors that take for ever, or far longer than CEL's cost says.
var endless = map[string]string{
	"a quantity":                       `quantity("1e100000000").isGreaterThan(quantity("1"))`,
	"a quantity put together":          `quantity("1e1000" + "00000").isGreaterThan(quantity("1"))`,
	"a quantity of a device":           `isQuantity(device.attributes["example.com"].text)`,
	"macros that double what they get": "optional.of(1)" + strings.Repeat(".optMap(x, x)", 40) + ".hasValue()",
	"lists of lists that are compared": bound("[dyn(1)]", "[%[1]s, %[1]s]", "%[1]s == %[1]s"),
	"lists of lists by a macro":        bound("[dyn(1)]", "[1, 2].map(i, %[1]s)", "%[1]s == %[1]s"),
	"texts that double":                bound(`"xxxxxxxx"`, "%[1]s + %[1]s", "%[1]s == %[1]s"),
	"a pattern that becomes large":     `device.driver.matches("` + strings.Repeat(`(\\pL?){1000}`, 500) + `")`,
	"a short one that becomes large":   `device.driver.matches("((x?){30}){30}")`,
	"a pattern of a device":            `device.driver.matches(device.attributes["example.com"].text)`,
	"a version":                        `isSemver("` + strings.Repeat("1", 9000) + `.0.0")`,
	"a range":                          `lists.range(1000000000).size() > 1`,
	"a text without an end":            `device.driver == "` + strings.Repeat("x", resourcev1.CELSelectorExpressionMaxLength-20) + `"`,
	"brackets without an end":          strings.Repeat("(", resourcev1.CELSelectorExpressionMaxLength),
}

// bound makes a selector in which each of 60 variables is made of the one before.
func bound(first, next, last string) string {
	name := func(i int) string { return fmt.Sprint("x", i) }
	expression := fmt.Sprintf(last, name(60))
	for i := 60; i > 0; i-- {
		expression = fmt.Sprintf("cel.bind(%s, %s, %s)", name(i), fmt.Sprintf(next, name(i-1)), expression)
	}
	return fmt.Sprintf("cel.bind(x0, %s, %s)", first, expression)
}

// Whoever writes a selector of a class, or of a claim, keeps nobody waiting: what it selects isn't
// found out.
func TestEndlessSelectors(t *testing.T) {
	for name, expression := range endless {
		selectors := []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: expression}}}
		ofClass, ofClaim := worker(), worker()
		ofClass.Classes[0].Spec.Selectors = selectors
		claim := oneDevice("x")
		claim.Spec.Devices.Requests[0].Exactly.Selectors = selectors
		ofClaim.Claims = append(ofClaim.Claims, claim)
		answers := make(chan scheduling.Answer)
		go func() {
			answers <- judge(ofClass, 1, asking("1"))
			answers <- judge(ofClaim, 1, func(s *corev1.PodSpec) {
				s.ResourceClaims = []corev1.PodResourceClaim{{Name: "x", ResourceClaimName: ptr.To("x")}}
			})
		}()
		for _, of := range []string{"class", "claim"} {
			select {
			case answer := <-answers:
				if answer.Verdict != scheduling.FitsNow {
					t.Errorf("%s of a %s: %v, %v", name, of, answer.Verdict, answer.Reasons)
				}
			case <-time.After(30 * time.Second):
				t.Fatalf("%s of a %s: no answer", name, of)
			}
		}
	}
}

// Long selectors take long to compile: the work that is allowed is used up by few.
func TestLongSelectors(t *testing.T) {
	o := worker()
	for i := range 30 {
		o.Classes[0].Spec.Selectors = append(o.Classes[0].Spec.Selectors, resourcev1.DeviceSelector{
			CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprint(strings.Repeat("(a || b) && ", 800), i, " == 1")},
		})
	}
	d := New(o)
	if d.Trial("ns", podSpec(asking("1")), scheduling.Now, nil) == nil {
		t.Fatal("no devices are asked for")
	}
	expect(t, judge(o, 1, asking("1")), scheduling.FitsNow, 1) // not found out
	left := mostWork
	for i := range 30 {
		d.memo.cost(o.Classes[0].Spec.Selectors[i].CEL.Expression, false, func(work int) { left -= work })
		if left <= 0 {
			return
		}
	}
	t.Errorf("30 long selectors leave %d of the work", left)
}

// What people select by is found out.
func TestUsualSelectors(t *testing.T) {
	for _, expression := range []string{
		`device.driver == "example.com"`,
		`device.attributes["example.com"].model in ["a", "b"] && !(device.attributes["example.com"].index == 3)`,
		`device.attributes["example.com"].model.matches("^(a100|h100)-[0-9]{2}g$")`,
		`device.attributes["example.com"].model.lowerAscii().startsWith("h")`,
		`device.capacity["example.com"].memory.compareTo(quantity("20Gi")) >= 0`,
		`device.attributes["example.com"].version.isGreaterThan(semver("12.4.0"))`,
		`has(device.attributes["example.com"].numa) && device.attributes["example.com"].numa + 1 > 2`,
		`device.attributes["example.com"].?numa.orValue(0) == 1 || "example.com" in device.attributes`,
		`cel.bind(d, device.attributes["example.com"], d.a && d.b)`,
		`device.attributes["example.com"].exists(name, name == "rdma")`,
	} {
		if !isBounded(expression) {
			t.Errorf("%s counts as too much work", expression)
		}
	}
}

// A selector of very many calls isn't compiled: that takes memory by the square of their number.
// Fewer take little.
func TestSelectorsOfVeryManyCalls(t *testing.T) {
	for begin, parts := range map[string][2]string{
		"1 == 1":                {" || 1 == 1", ""},
		"device.a":              {" && device.a", ""},
		"1 in [1":               {",1", "]"},
		"[1].exists(x, x == 1)": {" || [1].exists(x, x == 1)", ""},
		`device.attributes["a"][?"b"].orValue(1) == 1`: {` || device.attributes["a"][?"b"].orValue(1) == 1`, ""},
	} {
		text := func(more int) string { return begin + strings.Repeat(parts[0], more) + parts[1] }
		most := 1
		for isBounded(text(most)) {
			most *= 2
		}
		if most <= 8 || len(text(most/2)) > resourcev1.CELSelectorExpressionMaxLength {
			t.Errorf("%s: %d times", begin, most)
		}
		m := newMemo(nil, nil)
		if cost := costtest.Of(func() { m.cost(text(most/2), false, func(int) {}) }); cost > 16<<20 {
			t.Errorf("%s: %d MiB to compile it %d times", begin, cost>>20, most/2)
		}
	}
}

// One that can't be compiled is compiled once, and no error of it is kept: that repeats the text.
func TestSelectorsThatCantBeCompiled(t *testing.T) {
	for _, wrong := range []string{"a||", "1||", "[1,'a']==[1]||"} {
		text := strings.Repeat(" ", 9_000) + strings.Repeat(wrong, 40) + "true"
		if cost := costtest.Of(func() { newMemo(nil, nil).cost(text, false, func(int) {}) }); cost > 8<<20 {
			t.Errorf("%s: %d MiB", wrong, cost>>20)
		}
	}
	o := worker()
	o.Classes[0].Spec.Selectors[0].CEL.Expression = "a" + strings.Repeat("||a", 100)
	expect(t, judge(o, 1, asking("1")), scheduling.FitsNow, 1)
}

// The work of a selector is known for devices that an API server stores. Others aren't there.
func TestDevicesThatNoAPIServerStores(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	attribute := func(a resourcev1.DeviceAttribute) func(*resourcev1.ResourceSliceSpec) {
		return func(s *resourcev1.ResourceSliceSpec) {
			s.Devices[0].Attributes = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"text": a}
		}
	}
	for name, change := range map[string]func(*resourcev1.ResourceSliceSpec){
		"a long text":       attribute(resourcev1.DeviceAttribute{StringValue: &long}),
		"a long version":    attribute(resourcev1.DeviceAttribute{VersionValue: &long}),
		"long texts":        attribute(resourcev1.DeviceAttribute{StringValues: []string{long}}),
		"very many texts":   attribute(resourcev1.DeviceAttribute{StringValues: make([]string, 1000)}),
		"very many devices": func(s *resourcev1.ResourceSliceSpec) { s.Devices = slices.Repeat(s.Devices, 1000) },
		"very many taints":  func(s *resourcev1.ResourceSliceSpec) { s.Devices[0].Taints = make([]resourcev1.DeviceTaint, 1000) },
		"very many counters": func(s *resourcev1.ResourceSliceSpec) {
			s.Devices[0].ConsumesCounters = make([]resourcev1.DeviceCounterConsumption, 1000)
		},
		"very many sets of counters": func(s *resourcev1.ResourceSliceSpec) { s.SharedCounters = make([]resourcev1.CounterSet, 1000) },
		"a long pool":                func(s *resourcev1.ResourceSliceSpec) { s.Pool.Name = long },
		"a long device":              func(s *resourcev1.ResourceSliceSpec) { s.Devices[0].Name = long },
		"a long taint":               func(s *resourcev1.ResourceSliceSpec) { s.Devices[0].Taints = []resourcev1.DeviceTaint{{Key: long}} },
		"a long counter": func(s *resourcev1.ResourceSliceSpec) {
			s.SharedCounters = []resourcev1.CounterSet{{Counters: map[string]resourcev1.Counter{long: {}}}}
		},
		"a long counter of a device": func(s *resourcev1.ResourceSliceSpec) {
			s.Devices[0].ConsumesCounters = []resourcev1.DeviceCounterConsumption{{Counters: map[string]resourcev1.Counter{long: {}}}}
		},
		"a long driver":             func(s *resourcev1.ResourceSliceSpec) { s.Driver = long },
		"a long value of its nodes": func(s *resourcev1.ResourceSliceSpec) { s.NodeSelector = selecting("zone", long) },
		"a long key of its nodes":   func(s *resourcev1.ResourceSliceSpec) { s.NodeSelector = selecting(long, "a") },
		"a long value of a device's nodes": func(s *resourcev1.ResourceSliceSpec) {
			s.Devices[0].NodeSelector = selecting("zone", long)
		},
		"a long name": func(s *resourcev1.ResourceSliceSpec) {
			s.Devices[0].Attributes = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{resourcev1.QualifiedName(long): {BoolValue: ptr.To(true)}}
		},
		"very many attributes": func(s *resourcev1.ResourceSliceSpec) {
			s.Devices[0].Attributes = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{}
			for i := range 1000 {
				s.Devices[0].Attributes[resourcev1.QualifiedName(fmt.Sprint("a", i))] = resourcev1.DeviceAttribute{BoolValue: ptr.To(true)}
			}
		},
	} {
		for _, minor := range []int{34, 36} {
			o := worker()
			o.Minor = minor
			change(&o.Slices[0].Spec)
			inventory := New(o).inventory
			if inventory.nodes["a"] != nil || inventory.nodes["b"] == nil {
				t.Errorf("%s, 1.%d: the devices of %d nodes are there", name, minor, len(inventory.nodes))
			}
		}
	}
}

// veryMany is a selector of nodes that selects none, by very many values.
func veryMany() *corev1.NodeSelector {
	values := make([]string, 150_000)
	for i := range values {
		values[i] = fmt.Sprint("none-", i)
	}
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: values}},
	}}}
}

func selecting(key, value string) *corev1.NodeSelector {
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}},
	}}}
}

// veryManyRequirements is one that selects none, by very many requirements of a term.
func veryManyRequirements() *corev1.NodeSelector {
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: slices.Repeat([]corev1.NodeSelectorRequirement{{Key: "none", Operator: corev1.NodeSelectorOpExists}}, 60_000),
	}}}
}

// Nodes that are selected by very much aren't found out.
func TestSelectorsOfVeryManyNodes(t *testing.T) {
	for name, selector := range map[string]func() *corev1.NodeSelector{"values": veryMany, "requirements": veryManyRequirements} {
		t.Run(name, func(t *testing.T) {
			o := worker()
			for _, s := range o.Slices {
				s.Spec.NodeName, s.Spec.NodeSelector = nil, selector()
			}
			expect(t, judge(o, 1, asking("1")), scheduling.FitsNow, 1)

			o = worker()
			o.allocated("a", "gpu-0", "lasts")
			o.Claims[0].Status.Allocation.NodeSelector = selector()
			expect(t, judge(o, 1, func(s *corev1.PodSpec) {
				s.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: ptr.To("claim-0")}}
			}), scheduling.FitsNow, 1)
		})
	}
}

// Classes, claims and templates with more than API servers store aren't there: the allocator would
// compare all of it with all devices before it asks whether it may go on.
func TestMoreThanAPIServersStore(t *testing.T) {
	long := strings.Repeat("x", maxName+1)
	longSelectors := []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{
		Expression: strings.Repeat(" ", resourcev1.CELSelectorExpressionMaxLength) + "true",
	}}}
	request := func(change func(*resourcev1.DeviceRequest)) func(*resourcev1.DeviceClaim) {
		return func(c *resourcev1.DeviceClaim) { change(&c.Requests[0]) }
	}
	for name, change := range map[string]func(*resourcev1.DeviceClaim){
		"requests":    func(c *resourcev1.DeviceClaim) { c.Requests = slices.Repeat(c.Requests, 1000) },
		"constraints": func(c *resourcev1.DeviceClaim) { c.Constraints = make([]resourcev1.DeviceConstraint, 1000) },
		"requests of a constraint": func(c *resourcev1.DeviceClaim) {
			c.Constraints = []resourcev1.DeviceConstraint{{Requests: make([]string, 1000)}}
		},
		"alternatives": request(func(r *resourcev1.DeviceRequest) { r.FirstAvailable = make([]resourcev1.DeviceSubRequest, 1000) }),
		"selectors": request(func(r *resourcev1.DeviceRequest) {
			r.Exactly.Selectors = make([]resourcev1.DeviceSelector, 1000)
		}),
		"tolerations": request(func(r *resourcev1.DeviceRequest) {
			r.Exactly.Tolerations = make([]resourcev1.DeviceToleration, 1000)
		}),
		"name":                request(func(r *resourcev1.DeviceRequest) { r.Name = long }),
		"class":               request(func(r *resourcev1.DeviceRequest) { r.Exactly.DeviceClassName = long }),
		"key of a toleration": request(func(r *resourcev1.DeviceRequest) { r.Exactly.Tolerations = []resourcev1.DeviceToleration{{Key: long}} }),
		"name of an alternative": request(func(r *resourcev1.DeviceRequest) {
			r.FirstAvailable = []resourcev1.DeviceSubRequest{{Name: long}}
		}),
		"request that a constraint names": func(c *resourcev1.DeviceClaim) {
			c.Constraints = []resourcev1.DeviceConstraint{{Requests: []string{long}}}
		},
		"text of a selector": request(func(r *resourcev1.DeviceRequest) { r.Exactly.Selectors = longSelectors }),
		"text of an alternative's selector": request(func(r *resourcev1.DeviceRequest) {
			r.FirstAvailable = []resourcev1.DeviceSubRequest{{Selectors: longSelectors}}
		}),
		"tolerations of an alternative": request(func(r *resourcev1.DeviceRequest) {
			r.FirstAvailable = []resourcev1.DeviceSubRequest{{Tolerations: make([]resourcev1.DeviceToleration, 1000)}}
		}),
	} {
		o := worker()
		o.allocated("a", "gpu-0", "lasts")
		fine, much := oneDevice("fine"), oneDevice("much")
		change(&much.Spec.Devices)
		for _, claim := range []*resourcev1.ResourceClaim{fine, much} {
			template := &resourcev1.ResourceClaimTemplate{ObjectMeta: claim.ObjectMeta}
			template.Spec.Spec = claim.Spec
			o.Templates = append(o.Templates, template)
		}
		o.Claims = append(o.Claims, much)
		if d := New(o); len(d.templates) != 1 || len(d.claims) != 1 || len(d.With(o).templates) != 1 {
			t.Errorf("%s: %d templates and %d claims are there", name, len(d.templates), len(d.claims))
		}
	}
	for _, selectors := range [][]resourcev1.DeviceSelector{make([]resourcev1.DeviceSelector, 1000), longSelectors} {
		o := worker()
		o.Classes[0].Spec.Selectors = selectors
		if d := New(o); len(d.classes) != len(o.Classes)-1 {
			t.Errorf("%d of %d classes are there", len(d.classes), len(o.Classes))
		}
	}
}

// The same for what a claim was given: its amounts are copied, and its nodes are selected, for each
// judgement.
func TestAllocationsThatNoAPIServerStores(t *testing.T) {
	long, many := strings.Repeat("x", maxName+1), map[resourcev1.QualifiedName]resource.Quantity{}
	for i := range 1000 {
		many[resourcev1.QualifiedName(fmt.Sprint("c", i))] = resource.MustParse("1")
	}
	for name, change := range map[string]func(*resourcev1.AllocationResult){
		"value of a node": func(a *resourcev1.AllocationResult) { a.NodeSelector = selecting("zone", long) },
		"amounts":         func(a *resourcev1.AllocationResult) { a.Devices.Results[0].ConsumedCapacity = many },
		"name of an amount": func(a *resourcev1.AllocationResult) {
			a.Devices.Results[0].ConsumedCapacity = map[resourcev1.QualifiedName]resource.Quantity{resourcev1.QualifiedName(long): {}}
		},
		"device":  func(a *resourcev1.AllocationResult) { a.Devices.Results[0].Device = long },
		"results": func(a *resourcev1.AllocationResult) { a.Devices.Results = slices.Repeat(a.Devices.Results, 1000) },
	} {
		o := worker()
		o.allocated("a", "gpu-0", "lasts")
		o.allocated("a", "gpu-1", "lasts")
		change(o.Claims[1].Status.Allocation)
		if d := New(o); len(d.claims) != 1 || d.now.results() != 1 {
			t.Errorf("%s: %d claims hold %d devices", name, len(d.claims), d.now.results())
		}
	}
}

// What a selector costs is bounded, whatever it is: to look at, to compile and to evaluate.
func FuzzCost(f *testing.F) {
	for _, expression := range endless {
		f.Add(expression[:min(len(expression), 200)], "", "")
	}
	f.Add(`quantity("1e1`, "0", `").isGreaterThan(quantity("1"))`)
	f.Add(`device.driver.matches("`, "(x?){30}", `")`)
	f.Add("optional.of(1)", ".optMap(x, x)", ".hasValue()")
	f.Add(`device.driver == "a"`, ` || device.driver == "a"`, "")
	f.Add(`"a" in ["a"`, `,"a"`, "]")
	f.Add("", "(", "")
	f.Add("!", "!", "true")
	f.Add("1 == 1", " || 1 == 1", "")
	f.Add("a.b", "||a.b", "")
	f.Add("", " ", "a"+strings.Repeat("||a", 100))
	costtest.Check(f, resourcev1.CELSelectorExpressionMaxLength, 2500, func(text string) {
		o := worker()
		o.Classes[0].Spec.Selectors[0].CEL.Expression = text
		judge(o, 1, asking("1"))
	})
}
