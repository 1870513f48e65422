package placement_test

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/jobferry/jobferry/pkg/api/preference"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/placement"
	. "github.com/jobferry/jobferry/pkg/placement/internal/capacity/capacitytest"
)

// filterTest has one cluster, c, that is rejected, or isn't.
type filterTest struct {
	name    string
	request placement.Request
	job     *JobBuilder // nil: one without wishes
	cluster *Cluster
	want    placement.Reason // empty: not rejected
	message string
	detail  string
}

func checkFilters(t *testing.T, tests []filterTest) {
	t.Helper()
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if test.job == nil {
				test.job = NewJob("j")
			}
			test.request.Job = test.job.Obj()
			got := placement.Place(test.request, []placement.Cluster{test.cluster.Obj()})
			var rejection placement.Rejection
			for _, r := range got.Rejections {
				if r.Cluster == "c" {
					rejection = r
				}
			}
			if rejection.Reason != test.want || rejection.Message != test.message || rejection.Detail != test.detail {
				t.Errorf("got  %s %q %q\nwant %s %q %q", rejection.Reason, rejection.Message, rejection.Detail,
					test.want, test.message, test.detail)
			}
			if fits := got.Cluster == "c"; fits != (test.want == "") {
				t.Errorf("chosen: %q", got.Cluster)
			}
		})
	}
}

func full(name string) *NodeBuilder { return NewNode(name).Used("cpu", "4") }

// TestFiltersByRequest has what the Job, its queue and its past rule out.
func TestFiltersByRequest(t *testing.T) {
	eu, err := labels.Parse("region=eu")
	if err != nil {
		t.Fatal(err)
	}
	ours := labels.Set{"team": "a"}
	prefers := preferring(t, "region=eu; region=us after 5m", 4*time.Minute+59*time.Second)
	checkFilters(t, []filterTest{
		{name: "of a namespace that isn't dispatched", request: placement.Request{Namespace: ours, NamespaceClosed: true}, cluster: NewCluster("c"),
			want: "NamespaceClosed", message: "not for Jobs of a namespace that isn't dispatched"},
		{name: "for all namespaces", request: placement.Request{Namespace: ours}, cluster: NewCluster("c")},
		{name: "for this namespace", request: placement.Request{Namespace: ours}, cluster: NewCluster("c").Takes(labels.SelectorFromSet(ours))},
		{name: "for another namespace", request: placement.Request{Namespace: labels.Set{"team": "b"}}, cluster: NewCluster("c").Takes(labels.SelectorFromSet(ours)),
			want: "NamespaceMismatch", message: "not for Jobs of this namespace",
			detail: `spec.namespaceSelector "team=a" doesn't match the namespace's labels {team=b}`},
		{name: "for no namespace", request: placement.Request{Namespace: ours}, cluster: NewCluster("c").Takes(labels.Nothing()),
			want: "NamespaceMismatch", message: "not for Jobs of this namespace",
			detail: `spec.namespaceSelector "" doesn't match the namespace's labels {team=a}`},
		{name: "namespace goes before queue", request: placement.Request{Among: []string{}}, cluster: NewCluster("c").Takes(labels.SelectorFromSet(ours)),
			want: "NamespaceMismatch", message: "not for Jobs of this namespace",
			detail: `spec.namespaceSelector "team=a" doesn't match the namespace's labels {}`},
		{name: "not among", request: placement.Request{Among: []string{"x", "c2"}}, cluster: NewCluster("c"),
			want: "Unlisted", message: "not allowed for the Job's queue"},
		{name: "among none", request: placement.Request{Among: []string{}}, cluster: NewCluster("c"),
			want: "Unlisted", message: "not allowed for the Job's queue"},
		{name: "among", request: placement.Request{Among: []string{"c"}}, cluster: NewCluster("c")},

		{name: "selector matches", request: placement.Request{Selector: eu}, cluster: NewCluster("c").Label("region", "eu")},
		{name: "selector doesn't match", request: placement.Request{Selector: eu}, cluster: NewCluster("c").Label("region", "us"),
			want: "SelectorMismatch", message: "didn't match the cluster selector",
			detail: `labels {region=us} don't match "region=eu"`},
		{name: "selector goes before ready", request: placement.Request{Selector: eu}, cluster: NewCluster("c").NotReady("Unreachable"),
			want: "SelectorMismatch", message: "didn't match the cluster selector",
			detail: `labels {} don't match "region=eu"`},

		{name: "preferred", request: prefers, cluster: NewCluster("c").Label("region", "eu")},
		{name: "not preferred yet", request: prefers, cluster: NewCluster("c").Label("region", "us").Nodes(),
			want: "NotPreferred", message: "not preferred until 2026-01-01T12:05:00Z"},
		{name: "preferred by now", request: preferring(t, "region=eu; region=us after 5m", 5*time.Minute), cluster: NewCluster("c").Label("region", "us")},
		{name: "not preferred, cordoned", request: prefers, cluster: NewCluster("c").Label("region", "us").Cordoned(),
			want: "Cordoned", message: "cordoned"},
		{name: "of no step", request: prefers, cluster: NewCluster("c").NotReady("Unreachable"),
			want: "PreferenceMismatch", message: "didn't match the cluster preference", detail: "labels {}"},

		{name: "passed over", request: placement.Request{PassedOver: map[string]string{"c": "has a Job of this name that isn't ours"}},
			cluster: NewCluster("c").Nodes(), want: "PassedOver", message: "has a Job of this name that isn't ours"},
	})
}

// preferring is a request of a Job that waits since noon.
func preferring(t *testing.T, value string, waited time.Duration) placement.Request {
	t.Helper()
	p, err := preference.Parse(map[string]string{v1alpha1.AnnotationClusterPreference: value})
	if err != nil {
		t.Fatal(err)
	}
	since := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	return placement.Request{Preference: p, Since: since, Now: since.Add(waited)}
}

// TestFiltersByState has clusters that take no Jobs, or not these.
func TestFiltersByState(t *testing.T) {
	checkFilters(t, []filterTest{
		{name: "not ready", cluster: NewCluster("c").NotReady("Unreachable"), want: "NotReady", message: "not ready (Unreachable)"},
		{name: "not ready, no one knows why", cluster: NewCluster("c").NotReady(""), want: "NotReady", message: "not ready"},
		{name: "not ready goes before cordoned", cluster: NewCluster("c").NotReady("Connecting").Cordoned(),
			want: "NotReady", message: "not ready (Connecting)"},
		{name: "cordoned", cluster: NewCluster("c").Cordoned(), want: "Cordoned", message: "cordoned"},
		{name: "too old", job: NewJob("j").With(successPolicy), cluster: NewCluster("c").Minor(30),
			want: "FeatureMissing", message: "too old for successPolicy (Kubernetes 1.31)", detail: "runs Kubernetes 1.30"},
		{name: "drops a field", request: placement.Request{Recent: []string{"spec.x", "spec.y"}}, cluster: NewCluster("c").Dropping("spec.y"),
			want: "FeatureMissing", message: "dropping spec.y", detail: "runs Kubernetes 1.36"},
		{name: "drops another field", request: placement.Request{Recent: []string{"spec.x"}}, cluster: NewCluster("c").Dropping("spec.y")},
		{name: "just new enough", job: NewJob("j").With(successPolicy), cluster: NewCluster("c").Minor(31)},
		{name: "unknown version", job: NewJob("j").With(successPolicy), cluster: NewCluster("c").VersionUnknown()},
		{name: "embedded needs managedBy", cluster: NewCluster("c").Minor(31).Embedded(),
			want: "FeatureMissing", message: "too old for managedBy (Kubernetes 1.32)", detail: "runs Kubernetes 1.31"},
		{name: "built-in doesn't need managedBy", cluster: NewCluster("c").Minor(31)},
	})
}

// tooLittle is a detail that counts nodes with too little of a resource.
func tooLittle(nodes int, resource string) string {
	return fmt.Sprintf("%d Insufficient %s (spec.template.spec.containers[].resources.requests)", nodes, resource)
}

// TestFiltersByShape has what could never run, even in an empty cluster.
func TestFiltersByShape(t *testing.T) {
	checkFilters(t, []filterTest{
		{name: "no nodes", cluster: NewCluster("c").Nodes(), want: placement.NeverFits, message: "without nodes"},
		{name: "nothing wanted fits anywhere", job: NewJob("j").Parallelism(0), cluster: NewCluster("c").Nodes()},
		{name: "Pod too large", job: NewJob("j").Requests("cpu", "5", "memory", "1Gi"), cluster: NewCluster("c").Nodes(NewNode("n")),
			want: placement.NeverFits, message: "never fits: Insufficient cpu", detail: tooLittle(1, "cpu")},
		{name: "resource that isn't there", job: NewJob("j").Requests("nvidia.com/gpu", "1"), cluster: NewCluster("c").Nodes(full("n")),
			want: placement.NeverFits, message: "never fits: Insufficient nvidia.com/gpu", detail: tooLittle(1, "nvidia.com/gpu")},
		{name: "capacity taken for good", job: NewJob("j").Requests("cpu", "4"), cluster: NewCluster("c").Nodes(NewNode("n").UsedForGood("cpu", "100m")),
			want: placement.NeverFits, message: "never fits: Insufficient cpu", detail: tooLittle(1, "cpu")},
		{name: "node selector", job: NewJob("j").NodeSelector("gpu", "a100"), cluster: NewCluster("c").Nodes(NewNode("n")),
			want: placement.NeverFits, message: "never fits: node(s) didn't match Pod's node affinity/selector",
			detail: "1 node(s) didn't match Pod's node affinity/selector (spec.template.spec.nodeSelector and affinity.nodeAffinity)"},
		{name: "taints", cluster: NewCluster("c").Nodes(NewNode("n").Taint("gpu", corev1.TaintEffectNoSchedule)),
			want: placement.NeverFits, message: "never fits: node(s) had untolerated taint(s)",
			detail: "1 node(s) had untolerated taint(s) (spec.template.spec.tolerations)"},
		{name: "large in two resources on two nodes", job: NewJob("j").Requests("cpu", "4", "memory", "32Gi"),
			cluster: NewCluster("c").Nodes(NewNode("a"), NewNode("b").Has("cpu", "1", "memory", "64Gi")),
			want:    placement.NeverFits, message: "never fits: Insufficient cpu and Insufficient memory",
			detail: tooLittle(1, "cpu") + ", " + tooLittle(1, "memory")},
		{name: "spread over zones that no node is in", job: NewJob("j").With(spreadOverZones), cluster: NewCluster("c").Nodes(NewNode("n")),
			want: placement.NeverFits, message: "never fits: node(s) didn't match pod topology spread constraints (missing required label)",
			detail: "1 node(s) didn't match pod topology spread constraints (missing required label) (spec.template.spec.topologySpreadConstraints)"},
	})
}

func spreadOverZones(job *batchv1.Job) {
	job.Spec.Template.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule,
		LabelSelector: &metav1.LabelSelector{MatchLabels: job.Spec.Template.Labels},
	}}
}

// TestFiltersByFreeCapacity has what doesn't fit now.
func TestFiltersByFreeCapacity(t *testing.T) {
	atOnce := func(need, now int, reasons string) string {
		return fmt.Sprintf("Pods that must fit at once: %d, that would: %d; %s", need, now, reasons)
	}
	checkFilters(t, []filterTest{
		{name: "reserved", job: NewJob("j").Requests("cpu", "1"), cluster: NewCluster("c").Nodes(NewNode("n")).Reserved(),
			want: placement.Reserved, message: "reserved for a Job that goes before this one"},
		{name: "insufficient goes before reserved", job: NewJob("j").Requests("cpu", "1"), cluster: NewCluster("c").Nodes(full("n")).Reserved(),
			want: placement.Insufficient, message: "Insufficient cpu",
			detail: "Pods that must fit at once: 1, that would: 0; 1 Insufficient cpu (spec.template.spec.containers[].resources.requests)"},
		{name: "unknown capacity fits", cluster: NewCluster("c")},
		{name: "enough is free", job: NewJob("j").Pods(4).Requests("cpu", "1"), cluster: NewCluster("c").Nodes(NewNode("n"))},

		{name: "full", job: NewJob("j").Requests("cpu", "1"), cluster: NewCluster("c").Nodes(full("n")),
			want: placement.Insufficient, message: "Insufficient cpu", detail: atOnce(1, 0, tooLittle(1, "cpu"))},
		{name: "all nodes cordoned", cluster: NewCluster("c").Nodes(NewNode("n").Unschedulable()),
			want: placement.Insufficient, message: "node(s) were unschedulable",
			detail: atOnce(1, 0, "1 node(s) were unschedulable (spec.template.spec.tolerations)")},
		{name: "all nodes in trouble", cluster: NewCluster("c").Nodes(NewNode("n").
			Taint(corev1.TaintNodeNotReady, corev1.TaintEffectNoExecute).Taint(corev1.TaintNodeNotReady, corev1.TaintEffectNoSchedule)),
			want: placement.Insufficient, message: "node(s) had untolerated taint(s)",
			detail: atOnce(1, 0, "1 node(s) had untolerated taint(s) (spec.template.spec.tolerations)")},
		{name: "a node in trouble that Pods tolerate for some minutes",
			cluster: NewCluster("c").Nodes(NewNode("n").Taint(corev1.TaintNodeNotReady, corev1.TaintEffectNoExecute))},
		{name: "too many Pods", cluster: NewCluster("c").Nodes(NewNode("n").Used("pods", "110")),
			want: placement.Insufficient, message: "Too many pods", detail: atOnce(1, 0, "1 Too many pods")},
		{name: "half a gang", job: NewJob("j").Pods(3).Requests("cpu", "2", "nvidia.com/gpu", "1"),
			cluster: NewCluster("c").Nodes(NewNode("a").Has("nvidia.com/gpu", "4").Used("nvidia.com/gpu", "2"), NewNode("b").Has("nvidia.com/gpu", "1").Used("nvidia.com/gpu", "1")),
			want:    placement.Insufficient, message: "Insufficient cpu and Insufficient nvidia.com/gpu",
			detail: atOnce(3, 2, tooLittle(1, "cpu")+", "+tooLittle(1, "nvidia.com/gpu"))},
		{name: "wider than the cluster, which is empty", job: NewJob("j").Pods(1000).Requests("cpu", "1"),
			cluster: NewCluster("c").Nodes(NewNode("a").UsedForGood("cpu", "500m"), NewNode("b"))},
		{name: "wider than the cluster, which isn't empty", job: NewJob("j").Pods(1000).Requests("cpu", "1"),
			cluster: NewCluster("c").Nodes(NewNode("a").Used("cpu", "500m"), NewNode("b")),
			want:    placement.Insufficient, message: "Insufficient cpu", detail: atOnce(8, 7, tooLittle(2, "cpu"))},
		{name: "one per node", job: NewJob("j").Pods(2).OnePerNode(), cluster: NewCluster("c").Nodes(NewNode("a"), NewNode("b"))},
		{name: "one per node, a node full", job: NewJob("j").Pods(2).OnePerNode().Requests("cpu", "1"),
			cluster: NewCluster("c").Nodes(NewNode("a"), full("b")),
			want:    placement.Insufficient, message: "node(s) didn't match pod anti-affinity rules",
			detail: atOnce(2, 1, tooLittle(1, "cpu")+", 1 node(s) didn't match pod anti-affinity rules (spec.template.spec.affinity.podAntiAffinity)")},
		{name: "free on different nodes", job: NewJob("j").Requests("cpu", "2", "memory", "8Gi"),
			cluster: NewCluster("c").Nodes(NewNode("a").Used("cpu", "3"), NewNode("b").Used("memory", "12Gi")),
			want:    placement.Insufficient, message: "Insufficient cpu and Insufficient memory",
			detail: atOnce(1, 0, tooLittle(1, "cpu")+", "+tooLittle(1, "memory"))},
		{name: "completions left are few", job: NewJob("j").Pods(8).Succeeded(7).Requests("cpu", "2"),
			cluster: NewCluster("c").Nodes(NewNode("a").Used("cpu", "2"))},
		{name: "spread over zones, one of them full", job: NewJob("j").Pods(3).Requests("cpu", "1").With(spreadOverZones),
			cluster: NewCluster("c").Nodes(NewNode("a").Label(corev1.LabelTopologyZone, "a"), full("b").Label(corev1.LabelTopologyZone, "b")),
			want:    placement.Insufficient, message: "node(s) didn't match pod topology spread constraints",
			detail: atOnce(3, 1, tooLittle(1, "cpu")+", 1 node(s) didn't match pod topology spread constraints (spec.template.spec.topologySpreadConstraints)")},
	})
}

func successPolicy(job *batchv1.Job) { job.Spec.SuccessPolicy = &batchv1.SuccessPolicy{} }

func TestReasonsThatPass(t *testing.T) {
	passing := map[placement.Reason]bool{
		"NotReady": true, "Cordoned": true, placement.Insufficient: true, placement.Reserved: true,
		"Unlisted": false, "Unregistered": false, "SelectorMismatch": false,
		"FeatureMissing": false, "PassedOver": false, placement.NeverFits: false,
	}
	for reason, want := range passing {
		if got := reason.Passing(); got != want {
			t.Errorf("%s passes: %t, want %t", reason, got, want)
		}
	}
}

// What runs elsewhere wants room that is there.
func TestRoomNow(t *testing.T) {
	clusters := []placement.Cluster{
		NewCluster("grows").Nodes(NewNode("n").Has("cpu", "4").Used("cpu", "4")).Growing(9, "4").Obj(),
		NewCluster("preempts").Nodes(NewNode("n").Has("cpu", "4").Used("cpu", "4")).Preempting("n", "cpu", "4").Obj(),
	}
	request := placement.Request{Job: NewJob("j").Requests("cpu", "2").Obj(), RoomNow: true}
	d := placement.Place(request, clusters)
	if len(d.Candidates) > 0 || d.Rejections[0].Reason != placement.Insufficient || d.Rejections[0].Needed != 1 {
		t.Errorf("%+v, want that both are too full for one Pod", d)
	}
	if request.RoomNow = false; len(placement.Place(request, clusters).Candidates) != 2 {
		t.Error("neither grows nor preempts")
	}
}
