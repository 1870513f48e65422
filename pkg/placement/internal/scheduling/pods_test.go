package scheduling

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
	"github.com/jobferry/jobferry/pkg/placement/internal/change"
	"github.com/jobferry/jobferry/pkg/util/costtest"
)

var nobody types.NamespacedName

// capacityOf is what a Ledger would say of a Snapshot's nodes.
func capacityOf(s *Snapshot) *capacity.Capacity {
	var nodes []*capacity.Node
	for _, n := range s.Nodes {
		nodes = append(nodes, n.Node)
	}
	return capacity.NewCapacity(nodes)
}

// seen is what a Snapshot shows of the Pods on its nodes, in an order that doesn't matter.
func seen(s *Snapshot) map[string][]string {
	all := map[string][]string{}
	for _, n := range s.Nodes {
		var kinds []string
		for _, k := range n.kinds {
			kinds = append(kinds, fmt.Sprintf("%+v with %d terms, lasts %v leaving %v: %d", k.of.Value(), len(k.of.antiAffinity), k.lasts, k.leaving, k.count))
		}
		for _, p := range n.Pods {
			kinds = append(kinds, fmt.Sprintf("%+v %s", p.Value(), p.own.Value()))
		}
		slices.Sort(kinds)
		all[n.Object.Name] = kinds
	}
	return all
}

// expectIndexes checks that each kind has an index of its own, and that no more are used than there
// were kinds at once.
func expectIndexes(t *rapid.T, s *Snapshot, most int) {
	kinds := map[int32]kind{}
	for _, n := range s.Nodes {
		for _, k := range n.kinds {
			if other, is := kinds[k.index]; is && other != k.of.kind || s.kinds[k.index] != k.of || len(s.kinds) > most {
				t.Errorf("index %d of %d: kinds %v and %v", k.index, len(s.kinds), other, k.of.kind)
			}
			kinds[k.index] = k.of.kind
		}
	}
}

// TestPodsAreThoseOfTheLastEvents: whatever came before, the store shows the Pods as they are now.
func TestPodsAreThoseOfTheLastEvents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{}
		for _, name := range []string{"a", "b"} {
			w.node(name)
		}
		pods, now := NewPods(func(change.Change) {}), map[types.UID]*corev1.Pod{}
		for range rapid.IntRange(1, 30).Draw(t, "events") {
			uid := types.UID(rapid.SampledFrom([]string{"1", "2", "3", "4"}).Draw(t, "uid"))
			if rapid.IntRange(0, 3).Draw(t, "what") == 0 {
				pods.Remove(uid)
				delete(now, uid)
				continue
			}
			pod := ofJob(anyPod(t, w), rapid.SampledFrom([]string{"mine", "other"}).Draw(t, "owner"))
			pod.UID = uid
			switch uid { // what doesn't change while a Pod lives
			case "3":
				pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
			case "4":
				guardedPod(pod)
			}
			pods.Set(pod)
			now[uid] = pod
			if rapid.Bool().Draw(t, "look") { // what is kept between changes mustn't become stale
				pods.Snapshot(capacityOf(NewSnapshot(w.nodes, nil, nil)), nobody)
			}
		}
		var all, others []*corev1.Pod
		var bound []types.UID
		for uid, pod := range now {
			if all = append(all, pod); pod.OwnerReferences[0].Name == "other" {
				others = append(others, pod)
			}
			if pod.Spec.NodeName != "" && !capacity.Ended(pod) {
				bound = append(bound, uid)
			}
		}
		if keys := pods.Keys(); !sets.New(keys...).Equal(sets.New(bound...)) {
			t.Errorf("keys %v, want %v", keys, bound)
		}
		want := NewSnapshot(w.nodes, all, nil)
		got := pods.Snapshot(capacityOf(want), nobody)
		if diff := cmp.Diff(seen(want), seen(got)); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		expectIndexes(t, got, 4)
		got = pods.Snapshot(capacityOf(want), types.NamespacedName{Namespace: "ns", Name: "mine"})
		if diff := cmp.Diff(seen(NewSnapshot(w.nodes, others, nil)), seen(got)); diff != "" {
			t.Fatalf("without a Job (-want +got):\n%s", diff)
		}
	})
}

func anyPod(t *rapid.T, w *world) *corev1.Pod {
	pod := w.pod(rapid.SampledFrom([]string{"", "a", "b", "gone"}).Draw(t, "node"),
		"app="+rapid.SampledFrom([]string{"x", "y"}).Draw(t, "app"), "job-name="+rapid.SampledFrom([]string{"1", "2"}).Draw(t, "job"))
	switch rapid.IntRange(0, 3).Draw(t, "peculiarity") {
	case 0:
		pod.Status.Phase = corev1.PodSucceeded
	case 1:
		pod.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	}
	return pod
}

func guardedPod(pod *corev1.Pod) {
	pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: "zone", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}},
		}},
	}}
}

// ofJob makes a Job the Pod's controller.
func ofJob(pod *corev1.Pod, name string) *corev1.Pod {
	pod.UID = types.UID(pod.Name)
	pod.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "Job", Name: name, Controller: ptr.To(true),
	}}
	return pod
}

// A Job doesn't compete with itself.
func TestSnapshotWithoutAJob(t *testing.T) {
	w := &world{}
	w.node("a")
	pods := NewPods(func(change.Change) {})
	pods.Set(ofJob(w.pod("a", "app=x"), "mine"))
	pods.Set(ofJob(w.pod("a", "app=x"), "other"))
	c := capacityOf(NewSnapshot(w.nodes, nil, nil))
	for _, row := range []struct {
		job  string
		pods int
	}{{"mine", 1}, {"other", 1}, {"third", 2}, {"", 2}} {
		got := pods.Snapshot(c, types.NamespacedName{Namespace: "ns", Name: row.job})
		if n := len(got.Nodes[0].Pods); n != row.pods {
			t.Errorf("without %q: %d Pods, want %d", row.job, n, row.pods)
		}
	}
	if n := len(pods.Snapshot(c, types.NamespacedName{Namespace: "elsewhere", Name: "mine"}).Nodes[0].Pods); n != 2 {
		t.Errorf("without the Job of another namespace: %d Pods, want 2", n)
	}
}

// A Job has a Pod on each of many nodes. Without these, the others there aren't read again.
func TestManyPodsOfAJobAreLeftOut(t *testing.T) {
	const nodes, each = 100, 100
	w := &world{}
	pods := NewPods(func(change.Change) {})
	for i := range nodes {
		name := fmt.Sprint("n", i)
		w.node(name)
		for k := range each {
			pod := w.pod(name, fmt.Sprint("app=", k))
			pod.Name = fmt.Sprint(name, "-", k)
			pods.Set(ofJob(pod, fmt.Sprint("job-", k)))
		}
	}
	c := capacityOf(NewSnapshot(w.nodes, nil, nil))
	pods.Snapshot(c, nobody)
	cost := costtest.Of(func() { pods.Snapshot(c, types.NamespacedName{Namespace: "ns", Name: "job-0"}) })
	if most := uint64(nodes * each * 80); cost > most {
		t.Errorf("%d KiB for %d Pods, want %d KiB at most", cost>>10, nodes*each, most>>10)
	}
}

// What didn't change is kept: the whole Snapshot, or the nodes' topologies.
func TestSnapshotsAreKept(t *testing.T) {
	w := &world{}
	w.node("a", "zone=x")
	pods := NewPods(func(change.Change) {})
	pod := w.pod("a", "app=x")
	pods.Set(pod)
	c := capacityOf(NewSnapshot(w.nodes, nil, nil))
	first := pods.Snapshot(c, nobody)
	pods.Set(pod.DeepCopy())
	if pods.Snapshot(c, nobody) != first {
		t.Error("another Snapshot though nothing changed")
	}
	pods.Set(ofJob(w.pod("a"), "j"))
	second := pods.Snapshot(c, nobody)
	if second == first || second.topologies != first.topologies {
		t.Error("want another Snapshot, with the same topologies")
	}
	moved := w.nodes[0].DeepCopy()
	moved.Labels["zone"] = "y"
	if third := pods.Snapshot(capacityOf(NewSnapshot([]*corev1.Node{moved}, nil, nil)), nobody); third.topologies == first.topologies {
		t.Error("the topologies of a node as it was")
	}
}

// Who took a Snapshot is called once, and only after a change.
func TestChangesAreTold(t *testing.T) {
	w := &world{}
	calls := 0
	pods := NewPods(func(change.Change) { calls++ })
	expectCalls := func(when string, want int) {
		t.Helper()
		if calls != want {
			t.Errorf("%s: called %d times, want %d", when, calls, want)
		}
	}
	look := func() { pods.Snapshot(capacity.NewCapacity(nil), nobody) }
	pod := w.pod("a", "app=x")
	pods.Set(pod)
	expectCalls("nobody has looked", 0)
	look()
	pods.Set(pod.DeepCopy())
	expectCalls("nothing changed", 0)
	relabelled := pod.DeepCopy()
	relabelled.Labels["app"] = "y"
	pods.Set(relabelled)
	expectCalls("other labels", 1)
	pods.Remove(pod.UID)
	expectCalls("nobody has looked again", 1)
	look()
	pods.Set(pod)
	expectCalls("it's there again", 2)
}

// Slim Pods, as the manager reads them, are to others what the whole ones are.
func TestSlimPodsAreAlikeForOthers(t *testing.T) {
	w := &world{}
	guarded := w.pod("a", "app=x", "tier=1", "job-name=j")
	guardedPod(guarded)
	ports := w.pod("a", "app=x")
	ports.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 1}, {ContainerPort: 80, HostPort: 8080, HostIP: "10.0.0.1", Protocol: "UDP"}}
	ports.Spec.InitContainers = []corev1.Container{{
		RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways), Ports: []corev1.ContainerPort{{ContainerPort: 81, HostPort: 8081}},
	}}
	network := w.pod("a")
	network.Spec.HostNetwork = true
	network.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}}
	claims := mounting(w.pod("a"))
	claims.Spec.Volumes = append(claims.Spec.Volumes, corev1.Volume{Name: "other"},
		corev1.Volume{Name: "own", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}})
	for _, pod := range []*corev1.Pod{guarded, ports, network, claims} {
		slim, err := capacity.SlimPod(pod.DeepCopy())
		if err != nil {
			t.Fatal(err)
		}
		want, got := PodOf(pod), PodOf(slim.(*corev1.Pod))
		slices.SortFunc(want.ports, func(a, b capacity.HostPort) int { return int(a.Number - b.Number) })
		slices.SortFunc(got.ports, func(a, b capacity.HostPort) int { return int(a.Number - b.Number) })
		if want.kind != got.kind || want.own != got.own || !slices.Equal(want.ports, got.ports) || !slices.Equal(want.claims, got.claims) {
			t.Errorf("%s: whole %+v, slim %+v", pod.Name, want, got)
		}
	}
}

// TestManyPodsOnOneNode: a worker's API server says that all its Pods run on one node, and changes
// one of them again and again.
func TestManyPodsOnOneNode(t *testing.T) {
	const pods = 50_000
	there := capacity.NewCapacity([]*capacity.Node{{Object: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}}})
	p := NewPods(func(change.Change) {})
	set := func(i int, labels map[string]string) {
		p.Set(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "n", UID: types.UID(fmt.Sprint(i)), Labels: labels},
			Spec:       corev1.PodSpec{NodeName: "a"},
		})
	}
	for i := range pods {
		set(i, nil)
	}
	set(0, map[string]string{"changed": ""})
	on := p.Snapshot(there, nobody).Nodes[0]
	if len(on.Pods) != maxOnNode {
		t.Errorf("%d Pods are looked at, want %d", len(on.Pods), maxOnNode)
	}
	for i := range pods - 1 {
		p.Remove(types.UID(fmt.Sprint(i)))
	}
	if on := p.Snapshot(there, nobody).Nodes[0]; len(on.Pods) != 1 {
		t.Errorf("%d Pods are left, want the last", len(on.Pods))
	}
}
