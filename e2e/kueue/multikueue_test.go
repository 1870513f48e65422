package kueue_test

import (
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/e2e/checkout"
	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/kueue/kueuetest"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// otherHub is a hub that has no Kueue at first.
const otherHub = "other-hub"

const (
	worker1 = "multikueue-test-worker1"
	worker2 = "multikueue-test-worker2"
)

// A hub without Kueue gets it while the manager runs, and then a MultiKueue setup, in which one
// line is changed.
func TestMovedFromMultiKueue(t *testing.T) {
	f := kueuetest.WithoutKueue(t, otherHub)
	f.Manager()
	f.Kubectl(f.Hub, "", "apply", "--server-side", "-f", checkout.Path("charts", "jobferry", "files", "admission", "dispatch-policy.yaml"))
	f.Kubectl(f.Hub, "", "label", "namespace", f.NS, "--overwrite", v1alpha1.LabelDispatch+"=enabled")

	// Without Kueue nothing is missing.
	f.RegisterSecret("before", map[string][]byte{"kubeconfig": f.Cluster("w1").KubeconfigBytes()}, nil)
	f.WorkerUntil("before", ferrytest.Ready)
	f.Submit("without-kueue")
	f.HubJobUntil("without-kueue", rigtest.Complete)
	f.Delete("without-kueue", metav1.DeletePropagationBackground)
	f.HubJobGone("without-kueue")
	f.Unregister("before")
	f.WorkerGone("before")

	f.Install()
	f.SecretInKueue("worker1-secret", f.Cluster("w1").KubeconfigBytes())
	f.SecretInKueue("worker2-secret", f.Cluster("w2").KubeconfigBytes())
	manifests, err := os.ReadFile("testdata/multikueue.yaml")
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(manifests), "controllerName: kueue.x-k8s.io/multikueue", "controllerName: jobferry.dev/dispatcher", 1)
	f.Apply(f.Hub, f.NS, changed)
	f.WorkerUntil(worker1, ferrytest.Ready)
	f.WorkerUntil(worker2, ferrytest.Ready)
	f.CheckUntil("sample-multikueue", metav1.ConditionTrue, "Active")

	// A Job as MultiKueue's users submit it: with the queue's name, and nothing of Jobferry's.
	job := rigtest.Job(f.NS, "sample-job", kueuetest.Queue("user-queue"), kueuetest.Requests("1"), rigtest.Parallel(3))
	job.Spec.Template.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory] = kueuetest.Quantity("200Mi")
	f.Create(f.Hub, job)
	done := f.HubJobUntil("sample-job", rigtest.Complete)
	if cluster := ferrytest.ClusterOf(done); cluster != worker1 {
		t.Errorf("the Job ran on %q, and %s is preferred", cluster, worker1)
	}
	f.WorkloadUntil("sample-job", kueuetest.Finished)
	f.MirrorUntil("w1", "sample-job", rigtest.Complete)

	t.Run("Rotated", func(*testing.T) { rotated(f) })
	t.Run("Unsupported", func(*testing.T) { unsupported(f) })
	t.Run("Removed", func(*testing.T) { removed(f) })
}

// A kubeconfig that is rotated in Kueue's namespace is used.
func rotated(f *kueuetest.Fixture) {
	f.SecretInKueue("worker2-secret", []byte("no kubeconfig"))
	f.Annotate("multikueueclusters", worker2) // Secrets there are read once a minute
	f.WorkerUntil(worker2, ferrytest.NotReady(v1alpha1.ReasonKubeconfigInvalid))
	f.CheckUntil("sample-multikueue", metav1.ConditionTrue, "SomeActiveClusters")
	f.SecretInKueue("worker2-secret", f.Cluster("w2").KubeconfigBytes())
	f.Annotate("multikueueclusters", worker2)
	f.WorkerUntil(worker2, ferrytest.Ready)
	f.CheckUntil("sample-multikueue", metav1.ConditionTrue, "Active")
}

// The condition says why Jobferry can't use a cluster, and what to do.
func unsupported(f *kueuetest.Fixture) {
	// A Secret of somebody else in Kueue's namespace, which isn't for Jobferry.
	f.LabeledSecretInKueue("of-somebody", f.Cluster("w1").KubeconfigBytes(), nil)
	f.Apply(f.Hub, f.NS, `
apiVersion: kueue.x-k8s.io/v1beta2
kind: MultiKueueCluster
metadata: {name: by-path}
spec: {clusterSource: {kubeConfig: {locationType: Path, location: /etc/multikueue/kubeconfigs/worker}}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: MultiKueueCluster
metadata: {name: without-secret}
spec: {clusterSource: {kubeConfig: {locationType: Secret, location: nowhere}}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: MultiKueueCluster
metadata: {name: of-somebody}
spec: {clusterSource: {kubeConfig: {locationType: Secret, location: of-somebody}}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: MultiKueueConfig
metadata: {name: multikueue-test}
spec: {clusters: [multikueue-test-worker1, multikueue-test-worker2, by-path, without-secret, of-somebody]}
`)
	f.RemoteUntil("by-path", metav1.ConditionFalse, "UnsupportedClusterSource")
	f.RemoteUntil("without-secret", metav1.ConditionFalse, v1alpha1.ReasonSecretMissing)
	f.RemoteUntil("of-somebody", metav1.ConditionFalse, v1alpha1.ReasonSecretMissing)
	f.SecretGone("of-somebody")
	f.CheckUntil("sample-multikueue", metav1.ConditionTrue, "SomeActiveClusters")
}

// Deleting a MultiKueueCluster unregisters the worker.
func removed(f *kueuetest.Fixture) {
	f.Kubectl(f.Hub, "", "delete", "multikueuecluster", worker2)
	f.SecretGone(worker2)
	f.WorkerGone(worker2)
	f.WorkerUntil(worker1, func(w *v1alpha1.WorkerCluster) bool {
		return meta.IsStatusConditionTrue(w.Status.Conditions, v1alpha1.ConditionReady)
	})
}
