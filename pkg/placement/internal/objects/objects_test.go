package objects_test

import (
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
	"github.com/jobferry/jobferry/pkg/placement/internal/capacity/capacitytest"
	"github.com/jobferry/jobferry/pkg/placement/internal/change"
	"github.com/jobferry/jobferry/pkg/placement/internal/objects"
	"github.com/jobferry/jobferry/pkg/placement/internal/scheduling"
	"github.com/jobferry/jobferry/pkg/util/costtest"
)

func quota(namespace, name string) *corev1.ResourceQuota {
	return &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func TestAdmissionHasTheRulesOfItsNamespace(t *testing.T) {
	s := objects.New(func(change.Change) {})
	s.Quotas.Know(true)
	for _, q := range []*corev1.ResourceQuota{quota("a", "y"), quota("b", "other"), quota("a", "x"), quota("a", "gone")} {
		s.Quotas.Set(q)
	}
	s.Quotas.Remove(types.NamespacedName{Namespace: "a", Name: "gone"})
	expect := func(when string, want ...string) {
		t.Helper()
		var got []string
		for _, q := range s.Admission("a").Quotas {
			got = append(got, q.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
	}
	expect("in order of names", "x", "y")
	s.Quotas.Set(quota("a", "z"))
	expect("after a change", "x", "y", "z")
	s.Quotas.Know(false)
	expect("not known any more")
	s.Quotas.Know(true)
	expect("known again", "x", "y", "z")
	s.Quotas.Forget()
	s.Quotas.Know(true)
	expect("forgotten")
	if keys := s.Quotas.Keys(); len(keys) > 0 {
		t.Errorf("forgotten, but there: %v", keys)
	}
}

// TestManyQuotasAreListedOnce: a worker has very many quotas in a namespace, and they don't change
// while Jobs are judged.
func TestManyQuotasAreListedOnce(t *testing.T) {
	s := objects.New(func(change.Change) {})
	s.Quotas.Know(true)
	for i := range 10_000 {
		s.Quotas.Set(quota("a", strconv.Itoa(i)))
	}
	s.Admission("a")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s.Admission("a")
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 32<<10 { // listed anew, they take 80
		t.Errorf("%d KiB are allocated", took>>10)
	}
}

// A class that isn't there refuses Jobs; a kind that isn't known doesn't.
func TestWhatIsUnknownIsNil(t *testing.T) {
	s := objects.New(func(change.Change) {})
	if s.Admission("a").PriorityClasses != nil {
		t.Error("known before it was listed")
	}
	s.PriorityClasses.Know(true)
	if s.Admission("a").PriorityClasses == nil {
		t.Error("there are none, which is known")
	}
	s.PriorityClasses.Set(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}})
	if s.Admission("a").PriorityClasses["high"] == nil {
		t.Error("there is one")
	}
}

func TestChangesAreToldOnceAfterARead(t *testing.T) {
	calls := 0
	s := objects.New(func(change.Change) { calls++ })
	expect := func(when string, want int) {
		t.Helper()
		if calls != want {
			t.Errorf("%s: %d calls, want %d", when, calls, want)
		}
	}
	s.Quotas.Know(true)
	s.Quotas.Set(quota("a", "x"))
	expect("nobody has read", 0)
	s.Admission("a")
	s.Quotas.Know(true)
	expect("nothing changed", 0)
	s.Quotas.Set(quota("a", "x"))
	s.Quotas.Set(quota("a", "x"))
	expect("two changes", 1)
	s.Admission("a")
	s.Quotas.Know(false)
	expect("it refuses nothing any more", 2)
}

// Each change is told to those whom it may help, until they have read again: not to other
// namespaces, nor to those who lack something else.
func TestChangesAreToldByKind(t *testing.T) {
	var told []change.Change
	s, pods := objects.New(func(c change.Change) { told = append(told, c) }), scheduling.NewPods(func(change.Change) {})
	read := func() {
		s.Admission("a")
		s.Admission("b")
		s.Devices(36, pods, types.NamespacedName{})
		s.Volumes()
		s.NamespaceLabels()
	}
	ofA, ofB := change.Change{Kinds: change.Admission, Namespace: "a"}, change.Change{Kinds: change.Admission, Namespace: "b"}
	for _, c := range []struct {
		name    string
		happens func()
		want    []change.Change
	}{
		{"quotas", func() { s.Quotas.Set(quota("a", "x")); s.Quotas.Set(quota("a", "y")); s.Quotas.Set(quota("b", "x")) }, []change.Change{ofA, ofB}},
		{"a quota of a namespace without Jobs", func() { s.Quotas.Set(quota("c", "x")) }, nil},
		{"limits", func() {
			s.LimitRanges.Set(&corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "x"}})
		}, []change.Change{ofA}},
		{"a class, and then a quota", func() {
			s.PriorityClasses.Set(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}})
			s.Quotas.Set(quota("a", "x"))
		}, []change.Change{{Kinds: change.Admission}}},
		{"devices", func() {
			s.ResourceClaims.Set(&resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "c", Name: "x"}})
			s.ResourceSlices.Know(true)
		}, []change.Change{{Kinds: change.Devices}}},
		{"volumes", func() { s.StorageClasses.Know(true) }, []change.Change{{Kinds: change.Volumes}}},
		{"namespaces", func() { s.Namespaces.Set(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}}) }, []change.Change{{Kinds: change.Pods}}},
	} {
		read()
		told = nil
		if c.happens(); !slices.Equal(told, c.want) {
			t.Errorf("%s: %v are told, want %v", c.name, told, c.want)
		}
	}
}

// A Job's own claims aren't in its way.
func TestDevicesWithoutThoseOfAJob(t *testing.T) {
	s, pods := objects.New(func(change.Change) {}), scheduling.NewPods(func(change.Change) {})
	nobody, own := types.NamespacedName{Namespace: "n"}, types.NamespacedName{Namespace: "n", Name: "own"}
	fits := func(job types.NamespacedName) bool {
		t.Helper()
		d, known := s.Devices(36, pods, job)
		if d == nil || !known {
			t.Fatal("the devices aren't known")
		}
		count := resource.MustParse("1")
		spec := &corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"example.com/gpu": count}}}}}
		return d.Trial("n", spec, scheduling.Now, nil).Refuses(&capacity.Node{Object: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}}) == ""
	}
	isNil := func(when string, want bool) {
		t.Helper()
		if d, known := s.Devices(36, pods, nobody); d != nil || known != want {
			t.Errorf("%s: %v, known: %t", when, d, known)
		}
	}
	isNil("nothing is known", false)
	s.DeviceClasses.Know(true)
	isNil("there are no classes", true)
	s.DeviceClasses.Set(&resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpus"}, Spec: resourcev1.DeviceClassSpec{
		ExtendedResourceName: ptr.To("example.com/gpu"),
	}})
	s.ResourceSlices.Know(true)
	s.ResourceClaims.Know(true)
	isNil("the templates aren't known", false)
	s.ResourceClaimTemplates.Know(true)
	s.ResourceSlices.Set(&resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: resourcev1.ResourceSliceSpec{
		Driver: "d", NodeName: ptr.To("a"), Pool: resourcev1.ResourcePool{Name: "a", ResourceSliceCount: 1}, Devices: []resourcev1.Device{{Name: "gpu"}},
	}})
	if !fits(nobody) {
		t.Error("the device is free")
	}
	pods.Set(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p", UID: "p", OwnerReferences: []metav1.OwnerReference{{
		APIVersion: "batch/v1", Kind: "Job", Name: "own", Controller: ptr.To(true),
	}}}, Spec: corev1.PodSpec{NodeName: "a"}})
	s.ResourceClaims.Set(&resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c"}, Status: resourcev1.ResourceClaimStatus{
		ReservedFor: []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", UID: "p"}},
		Allocation: &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
			Results: []resourcev1.DeviceRequestAllocationResult{{Driver: "d", Pool: "a", Device: "gpu"}},
		}},
	}})
	if fits(nobody) || !fits(own) {
		t.Error("the device is the Job's own Pod's")
	}
}

// slowly is a clock by which whatever is measured takes a hundredth of a second.
type slowly struct {
	now    time.Time
	timers map[time.Time][]func()
}

func (c *slowly) Now() time.Time {
	c.now = c.now.Add(10 * time.Millisecond)
	return c.now
}

func (c *slowly) after(d time.Duration, then func()) {
	c.timers[c.now.Add(d)] = append(c.timers[c.now.Add(d)], then)
}

func (c *slowly) pass(d time.Duration) {
	c.now = c.now.Add(d)
	for at, all := range c.timers {
		if !at.After(c.now) {
			delete(c.timers, at)
			for _, then := range all {
				then()
			}
		}
	}
}

// TestChangesAreTakenNoticeOfAtAPace: a worker's objects take long to be read, and change all the
// time. Who awaits a change is told when it can be read.
func TestChangesAreTakenNoticeOfAtAPace(t *testing.T) {
	devicesOf := func(job string) func(*objects.Store, *scheduling.Pods) any {
		return func(s *objects.Store, pods *scheduling.Pods) any {
			d, _ := s.Devices(36, pods, types.NamespacedName{Namespace: "n", Name: job})
			return d
		}
	}
	claim := func(s *objects.Store, i int) {
		s.ResourceClaims.Set(&resourcev1.ResourceClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: strconv.Itoa(i)},
			Status:     resourcev1.ResourceClaimStatus{ReservedFor: []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", UID: "p"}}},
		})
	}
	for name, row := range map[string]struct {
		change func(*objects.Store, int)
		read   func(*objects.Store, *scheduling.Pods) any
		told   change.Change
	}{
		"devices":                     {claim, devicesOf("other"), change.Change{Kinds: change.Devices}},
		"devices without a Job's own": {claim, devicesOf("own"), change.Change{Kinds: change.Devices}},
		"volumes": {func(s *objects.Store, i int) {
			s.PersistentVolumes.Set(&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: strconv.Itoa(i)}})
		}, func(s *objects.Store, _ *scheduling.Pods) any { return s.Volumes() }, change.Change{Kinds: change.Volumes}},
	} {
		t.Run(name, func(t *testing.T) {
			const rounds = 500
			var told []change.Change
			clock := &slowly{time.Unix(0, 0), map[time.Time][]func(){}}
			s, pods := objects.New(func(c change.Change) { told = append(told, c) }), scheduling.NewPods(func(change.Change) {})
			s.PaceBy(clock.Now, clock.after)
			for _, k := range []interface{ Know(known bool) }{
				s.DeviceClasses, s.ResourceSlices, s.ResourceClaims, s.ResourceClaimTemplates, s.Claims, s.PersistentVolumes, s.StorageClasses,
			} {
				k.Know(true)
			}
			s.DeviceClasses.Set(&resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpus"}})
			pods.Set(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p", UID: "p", OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "batch/v1", Kind: "Job", Name: "own", Controller: ptr.To(true),
			}}}, Spec: corev1.PodSpec{NodeName: "a"}})
			last, made := row.read(s, pods), 1
			for i := range rounds {
				row.change(s, i)
				if is := row.read(s, pods); is != last {
					last, made = is, made+1
				}
				clock.pass(10 * time.Millisecond)
			}
			t.Logf("made %d times of %d changes", made, rounds)
			if most := rounds / 4; made > most || made < 10 {
				t.Errorf("they are made %d times of %d changes, want %d", made, rounds, most)
			}
			clock.pass(time.Minute)
			last, told = row.read(s, pods), nil
			row.change(s, rounds)
			if is := row.read(s, pods); is != last || len(told) > 0 {
				t.Errorf("at once: told %v", told)
			}
			clock.pass(time.Minute)
			if is := row.read(s, pods); is == last || !slices.Equal(told, []change.Change{row.told}) {
				t.Errorf("a minute later: told %v, want %v", told, row.told)
			}
		})
	}
}

// Very many Jobs that have Pods of their own in a worker are judged in turn: whose claims are whose
// is found out for all of them at once, at the pace of devices.
func TestOwnersOfClaimsAreFoundAtAPace(t *testing.T) {
	const jobs = 20
	clock := &slowly{time.Unix(0, 0), map[time.Time][]func(){}}
	s, pods := objects.New(func(change.Change) {}), scheduling.NewPods(func(change.Change) {})
	s.PaceBy(clock.Now, clock.after)
	for _, k := range []interface{ Know(known bool) }{s.DeviceClasses, s.ResourceSlices, s.ResourceClaims, s.ResourceClaimTemplates} {
		k.Know(true)
	}
	s.DeviceClasses.Set(&resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpus"}, Spec: resourcev1.DeviceClassSpec{
		ExtendedResourceName: ptr.To("example.com/gpu"),
	}})
	slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: resourcev1.ResourceSliceSpec{
		Driver: "d", NodeName: ptr.To("a"), Pool: resourcev1.ResourcePool{Name: "a", ResourceSliceCount: 1},
	}}
	start := func(i int) {
		pods.Set(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: strconv.Itoa(i), UID: types.UID(strconv.Itoa(i)), OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "batch/v1", Kind: "Job", Name: strconv.Itoa(i), Controller: ptr.To(true),
		}}}, Spec: corev1.PodSpec{NodeName: "a"}})
	}
	for i := range jobs + 1 {
		device := strconv.Itoa(i)
		slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{Name: device})
		s.ResourceClaims.Set(&resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: device}, Status: resourcev1.ResourceClaimStatus{
			ReservedFor: []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", UID: types.UID(device)}},
			Allocation: &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
				Results: []resourcev1.DeviceRequestAllocationResult{{Driver: "d", Pool: "a", Device: device}},
			}},
		}})
		if i < jobs {
			start(i)
		}
	}
	s.ResourceSlices.Set(slice)
	fits := func(i int) bool {
		d, _ := s.Devices(36, pods, types.NamespacedName{Namespace: "n", Name: strconv.Itoa(i)})
		spec := &corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"example.com/gpu": resource.MustParse("1")}}}}}
		return d.Trial("n", spec, scheduling.Now, nil).Refuses(&capacity.Node{Object: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}}) == ""
	}
	all := func(when string, last bool) {
		t.Helper()
		for i := range jobs {
			if !fits(i) {
				t.Errorf("%s: a claim of Job %d is in its way", when, i)
			}
		}
		if fits(jobs) != last {
			t.Errorf("%s: the last Job's claim is its own: %t, want %t", when, !last, last)
		}
	}
	all("without the last Job's Pod", false)
	start(jobs)
	all("at once", false)
	clock.pass(time.Minute)
	all("a minute later", true)
}

// A claim that a worker says is reserved for very many is reserved for as many as can be.
func TestConsumersOfAClaimAreBounded(t *testing.T) {
	claim := &resourcev1.ResourceClaim{}
	claim.Status.ReservedFor = make([]resourcev1.ResourceClaimConsumerReference, 100_000)
	if held := objects.SlimResourceClaim(claim).Status.ReservedFor; len(held) != 256 || cap(held) > 1000 {
		t.Errorf("%d consumers are held, in a list for %d", len(held), cap(held))
	}
	claim.Status.ReservedFor = claim.Status.ReservedFor[:256]
	if held := objects.SlimResourceClaim(claim).Status.ReservedFor; len(held) != 256 {
		t.Errorf("of 256 consumers, %d are held", len(held))
	}
}

// Whoever asks for the namespaces of a worker has them as they are then. Very many aren't copied
// while he asks, though they change all the time.
func TestManyNamespacesArentCopied(t *testing.T) {
	s := objects.New(func(change.Change) {})
	s.Namespaces.Know(true)
	const namespaces = 5000
	set := func(i int) {
		s.Namespaces.Set(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: strconv.Itoa(i)}})
	}
	for i := range namespaces {
		set(i)
	}
	for i := range 3 {
		var first, again map[string]*corev1.Namespace
		cost := costtest.Of(func() { first = s.NamespaceLabels() })
		set(namespaces + i)
		cost += costtest.Of(func() { again = s.NamespaceLabels() })
		if len(first) != namespaces+i || len(again) != namespaces+i+1 || cost > namespaces*2 {
			t.Errorf("%d, and then %d namespaces; %d bytes were allocated", len(first), len(again), cost)
		}
	}
}

// What an autoscaler may add is found out by the nodes that there are, not by what is free on them:
// a reservation doesn't have it found out again, nor does a Pod.
func TestARoomIsKeptWhileItsNodesAre(t *testing.T) {
	s := objects.New(func(change.Change) {})
	node := func(name, cpu string) *corev1.Node {
		return capacitytest.NewNode(name).Has("cpu", cpu, "pods", "110").Obj()
	}
	s.Ledger.SetNode(node("n", "8"))
	s.Ledger.SetNode(node("m", "8"))
	of := &objects.Autoscaler{Spec: &v1alpha1.Autoscaling{NodeTemplates: []v1alpha1.NodeTemplate{
		{Name: "t", MaxNodes: 9, Allocatable: capacitytest.Quantities("cpu", "8", "pods", "110")},
	}}}
	job := capacitytest.NewJob("j").Requests("cpu", "1")
	shape := capacity.ShapeOf(&job.Obj().Spec.Template)
	last := s.Room(types.NamespacedName{}, of)
	for _, step := range []struct {
		name string
		do   func()
		kept bool
	}{
		{"a reservation", func() { s.Ledger.Reserve(job.Key(), shape, 1) }, true},
		{"a Pod", func() { s.Ledger.SetPod(capacitytest.Bind(job.Pod("p"), "n")) }, true},
		{"a node with more", func() { s.Ledger.SetNode(node("n", "9")) }, false},
		{"a node goes", func() { s.Ledger.DeleteNode("m") }, false},
		{"Pods that no node has room for", func() { s.Ledger.Reserve(job.Key(), shape, 100) }, false},
	} {
		step.do()
		room := s.Room(types.NamespacedName{}, of)
		if (room == last) != step.kept {
			t.Errorf("%s: it's kept: %v", step.name, room == last)
		}
		last = room
	}
}

// Drivers are configured by texts that a tenant of a worker chooses, and that decide nothing. They
// would be packed and copied for each Job that names the claim.
func TestConfigurationsOfDriversArentHeld(t *testing.T) {
	config := resourcev1.DeviceConfiguration{Opaque: &resourcev1.OpaqueDeviceConfiguration{Driver: strings.Repeat("x", 1<<20)}}
	spec := resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Config: []resourcev1.DeviceClaimConfiguration{{DeviceConfiguration: config}}}}
	class := &resourcev1.DeviceClass{Spec: resourcev1.DeviceClassSpec{Config: []resourcev1.DeviceClassConfiguration{{DeviceConfiguration: config}}}}
	claim := &resourcev1.ResourceClaim{Spec: spec}
	template := &resourcev1.ResourceClaimTemplate{Spec: resourcev1.ResourceClaimTemplateSpec{Spec: spec}}
	held := objects.SlimDeviceClass(class).Size() + objects.SlimResourceClaim(claim).Size() + objects.SlimResourceClaimTemplate(template).Size()
	if held > 1024 {
		t.Errorf("%d bytes are held", held)
	}
	if len(class.Spec.Config)+len(claim.Spec.Devices.Config)+len(template.Spec.Spec.Devices.Config) != 3 {
		t.Error("what was sent is changed")
	}
}
