package placement_test

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	. "github.com/jobferry/jobferry/pkg/manager/capacity/capacitytest"
	"github.com/jobferry/jobferry/pkg/manager/placement"
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
	checkFilters(t, []filterTest{
		{name: "of a namespace that isn't dispatched", request: placement.Request{Namespace: ours, NamespaceClosed: true}, cluster: NewCluster("c"),
			want: placement.NamespaceClosed, message: "not for Jobs of a namespace that isn't dispatched"},
		{name: "for all namespaces", request: placement.Request{Namespace: ours}, cluster: NewCluster("c")},
		{name: "for this namespace", request: placement.Request{Namespace: ours}, cluster: NewCluster("c").Takes(labels.SelectorFromSet(ours))},
		{name: "for another namespace", request: placement.Request{Namespace: labels.Set{"team": "b"}}, cluster: NewCluster("c").Takes(labels.SelectorFromSet(ours)),
			want: placement.NamespaceMismatch, message: "not for Jobs of this namespace",
			detail: `spec.namespaceSelector "team=a" doesn't match the namespace's labels {team=b}`},
		{name: "for no namespace", request: placement.Request{Namespace: ours}, cluster: NewCluster("c").Takes(labels.Nothing()),
			want: placement.NamespaceMismatch, message: "not for Jobs of this namespace",
			detail: `spec.namespaceSelector "" doesn't match the namespace's labels {team=a}`},
		{name: "namespace goes before queue", request: placement.Request{Among: []string{}}, cluster: NewCluster("c").Takes(labels.SelectorFromSet(ours)),
			want: placement.NamespaceMismatch, message: "not for Jobs of this namespace",
			detail: `spec.namespaceSelector "team=a" doesn't match the namespace's labels {}`},
		{name: "not among", request: placement.Request{Among: []string{"x", "c2"}}, cluster: NewCluster("c"),
			want: placement.Unlisted, message: "not allowed for the Job's queue"},
		{name: "among none", request: placement.Request{Among: []string{}}, cluster: NewCluster("c"),
			want: placement.Unlisted, message: "not allowed for the Job's queue"},
		{name: "among", request: placement.Request{Among: []string{"c"}}, cluster: NewCluster("c")},

		{name: "selector matches", request: placement.Request{Selector: eu}, cluster: NewCluster("c").Label("region", "eu")},
		{name: "selector doesn't match", request: placement.Request{Selector: eu}, cluster: NewCluster("c").Label("region", "us"),
			want: placement.SelectorMismatch, message: "didn't match the cluster selector",
			detail: `labels {region=us} don't match "region=eu"`},
		{name: "selector goes before ready", request: placement.Request{Selector: eu}, cluster: NewCluster("c").NotReady("Unreachable"),
			want: placement.SelectorMismatch, message: "didn't match the cluster selector",
			detail: `labels {} don't match "region=eu"`},

		{name: "passed over", request: placement.Request{PassedOver: map[string]string{"c": "has a Job of this name that isn't ours"}},
			cluster: NewCluster("c").Nodes(), want: placement.PassedOver, message: "has a Job of this name that isn't ours"},
	})
}

// TestFiltersByState has clusters that take no Jobs, or not these.
func TestFiltersByState(t *testing.T) {
	checkFilters(t, []filterTest{
		{name: "not ready", cluster: NewCluster("c").NotReady("Unreachable"), want: placement.NotReady, message: "not ready (Unreachable)"},
		{name: "not ready, no one knows why", cluster: NewCluster("c").NotReady(""), want: placement.NotReady, message: "not ready"},
		{name: "not ready goes before cordoned", cluster: NewCluster("c").NotReady("Connecting").Cordoned(),
			want: placement.NotReady, message: "not ready (Connecting)"},
		{name: "cordoned", cluster: NewCluster("c").Cordoned(), want: placement.Cordoned, message: "cordoned"},
		{name: "too old", job: NewJob("j").With(successPolicy), cluster: NewCluster("c").Minor(30),
			want: placement.FeatureMissing, message: "too old for successPolicy (Kubernetes 1.31)", detail: "runs Kubernetes 1.30"},
		{name: "drops a field", request: placement.Request{Recent: []string{"spec.x", "spec.y"}}, cluster: NewCluster("c").Dropping("spec.y"),
			want: placement.FeatureMissing, message: "dropping spec.y", detail: "runs Kubernetes 1.36"},
		{name: "drops another field", request: placement.Request{Recent: []string{"spec.x"}}, cluster: NewCluster("c").Dropping("spec.y")},
		{name: "just new enough", job: NewJob("j").With(successPolicy), cluster: NewCluster("c").Minor(31)},
		{name: "unknown version", job: NewJob("j").With(successPolicy), cluster: NewCluster("c").VersionUnknown()},
		{name: "embedded needs managedBy", cluster: NewCluster("c").Minor(31).Embedded(),
			want: placement.FeatureMissing, message: "too old for managedBy (Kubernetes 1.32)", detail: "runs Kubernetes 1.31"},
		{name: "built-in doesn't need managedBy", cluster: NewCluster("c").Minor(31)},
	})
}

// TestFiltersByShape has what could never run, even in an empty cluster.
func TestFiltersByShape(t *testing.T) {
	checkFilters(t, []filterTest{
		{name: "no nodes", cluster: NewCluster("c").Nodes(), want: placement.NeverFits, message: "without nodes"},
		{name: "nothing wanted fits anywhere", job: NewJob("j").Parallelism(0), cluster: NewCluster("c").Nodes()},
		{name: "Pod too large", job: NewJob("j").Requests("cpu", "5", "memory", "1Gi"), cluster: NewCluster("c").Nodes(NewNode("n")),
			want: placement.NeverFits, message: "too small for one Pod's cpu",
			detail: "a Pod fits on no node, even after all Pods that end by themselves have ended"},
		{name: "resource that isn't there", job: NewJob("j").Requests("nvidia.com/gpu", "1"), cluster: NewCluster("c").Nodes(full("n")),
			want: placement.NeverFits, message: "too small for one Pod's nvidia.com/gpu",
			detail: "a Pod fits on no node, even after all Pods that end by themselves have ended"},
		{name: "capacity taken for good", job: NewJob("j").Requests("cpu", "4"), cluster: NewCluster("c").Nodes(NewNode("n").UsedForGood("cpu", "100m")),
			want: placement.NeverFits, message: "too small for one Pod's cpu",
			detail: "a Pod fits on no node, even after all Pods that end by themselves have ended"},
		{name: "node selector", job: NewJob("j").NodeSelector("gpu", "a100"), cluster: NewCluster("c").Nodes(NewNode("n")),
			want: placement.NeverFits, message: "without a node that matches the Pod's node selector or affinity"},
		{name: "taints", cluster: NewCluster("c").Nodes(NewNode("n").Taint("gpu", corev1.TaintEffectNoSchedule)),
			want: placement.NeverFits, message: "with untolerated taints on every node that matches"},
		{name: "large in two resources on two nodes", job: NewJob("j").Requests("cpu", "4", "memory", "32Gi"),
			cluster: NewCluster("c").Nodes(NewNode("a"), NewNode("b").Has("cpu", "1", "memory", "64Gi")),
			want:    placement.NeverFits, message: "too small for one Pod's cpu and memory on the same node",
			detail: "a Pod fits on no node, even after all Pods that end by themselves have ended"},
	})
}

// TestFiltersByFreeCapacity has what doesn't fit now.
func TestFiltersByFreeCapacity(t *testing.T) {
	checkFilters(t, []filterTest{
		{name: "unknown capacity fits", cluster: NewCluster("c")},
		{name: "enough is free", job: NewJob("j").Pods(4).Requests("cpu", "1"), cluster: NewCluster("c").Nodes(NewNode("n"))},

		{name: "full", job: NewJob("j").Requests("cpu", "1"), cluster: NewCluster("c").Nodes(full("n")),
			want: placement.Insufficient, message: "Insufficient cpu", detail: "Pods that must fit at once: 1, that would: 0"},
		{name: "all nodes cordoned", cluster: NewCluster("c").Nodes(NewNode("n").Unschedulable()),
			want: placement.Insufficient, message: "with unschedulable nodes only"},
		{name: "all nodes in trouble", cluster: NewCluster("c").Nodes(NewNode("n").Taint(corev1.TaintNodeNotReady, corev1.TaintEffectNoExecute)),
			want: placement.Insufficient, message: "with troubled nodes only (taints of node.kubernetes.io)"},
		{name: "too many Pods", cluster: NewCluster("c").Nodes(NewNode("n").Used("pods", "110")),
			want: placement.Insufficient, message: "Insufficient pods", detail: "Pods that must fit at once: 1, that would: 0"},
		{name: "half a gang", job: NewJob("j").Pods(3).Requests("cpu", "2", "nvidia.com/gpu", "1"),
			cluster: NewCluster("c").Nodes(NewNode("a").Has("nvidia.com/gpu", "4").Used("nvidia.com/gpu", "2"), NewNode("b").Has("nvidia.com/gpu", "1").Used("nvidia.com/gpu", "1")),
			want:    placement.Insufficient, message: "Insufficient nvidia.com/gpu", detail: "Pods that must fit at once: 3, that would: 2"},
		{name: "wider than the cluster, which is empty", job: NewJob("j").Pods(1000).Requests("cpu", "1"),
			cluster: NewCluster("c").Nodes(NewNode("a").UsedForGood("cpu", "500m"), NewNode("b"))},
		{name: "wider than the cluster, which isn't empty", job: NewJob("j").Pods(1000).Requests("cpu", "1"),
			cluster: NewCluster("c").Nodes(NewNode("a").Used("cpu", "500m"), NewNode("b")),
			want:    placement.Insufficient, message: "Insufficient cpu", detail: "Pods that must fit at once: 8, that would: 7"},
		{name: "one per node", job: NewJob("j").Pods(2).OnePerNode(), cluster: NewCluster("c").Nodes(NewNode("a"), NewNode("b"))},
		{name: "one per node, a node full", job: NewJob("j").Pods(2).OnePerNode().Requests("cpu", "1"),
			cluster: NewCluster("c").Nodes(NewNode("a"), full("b")),
			want:    placement.Insufficient, message: "Insufficient nodes with a Pod each", detail: "Pods that must fit at once: 2, that would: 1"},
		{name: "free on different nodes", job: NewJob("j").Requests("cpu", "2", "memory", "8Gi"),
			cluster: NewCluster("c").Nodes(NewNode("a").Used("cpu", "3"), NewNode("b").Used("memory", "12Gi")),
			want:    placement.Insufficient, message: "Insufficient cpu and memory on the same node",
			detail: "Pods that must fit at once: 1, that would: 0"},
		{name: "completions left are few", job: NewJob("j").Pods(8).Succeeded(7).Requests("cpu", "2"),
			cluster: NewCluster("c").Nodes(NewNode("a").Used("cpu", "2"))},
	})
}

func successPolicy(job *batchv1.Job) { job.Spec.SuccessPolicy = &batchv1.SuccessPolicy{} }

func TestReasonsThatPass(t *testing.T) {
	passing := map[placement.Reason]bool{
		placement.NotReady: true, placement.Cordoned: true, placement.Insufficient: true,
		placement.Unlisted: false, placement.Unregistered: false, placement.SelectorMismatch: false,
		placement.FeatureMissing: false, placement.PassedOver: false, placement.NeverFits: false,
	}
	for reason, want := range passing {
		if got := reason.Passing(); got != want {
			t.Errorf("%s passes: %t, want %t", reason, got, want)
		}
	}
}
