package dispatch_test

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/manager"
)

// TestClaims has a Job whose claim is in no worker at first, then where no node can use it, and
// then in another worker. Nothing but the workers' volumes tells the manager.
func TestClaims(t *testing.T) {
	f := volumesFor(t)
	f.Submit("job", mounting("data"))
	f.EventUntil("job", "Pending", `2 never fits: persistentvolumeclaim "data" not found`)
	f.bound("w1", "data", "elsewhere")
	f.EventUntil("job", "Pending", "w1: never fits: node(s) didn't match PersistentVolume's node affinity")
	f.bound("w2", "data", "")
	f.HubJobUntil("job", ferrytest.All(rigtest.Complete, ferrytest.IsAt("w2")))
	if f.HasEvent("job", "Moved", "") || f.HasEvent("job", "PodsWaiting", "") {
		t.Error("the Job was in a worker that couldn't run it")
	}
}

// TestClaimsWithoutCapacity: where a Job's claims are counts also in workers whose nodes aren't
// known.
func TestClaimsWithoutCapacity(t *testing.T) {
	f := volumesFor(t)
	for _, worker := range []string{"w1", "w2"} {
		f.SetWorker(worker, `{"capacity":"Unlimited"}`)
		defer f.SetWorker(worker, `{"capacity":"Nodes"}`) // the tests share the workers
		f.WorkerUntil(worker, ferrytest.Ready)
	}
	f.bound("w2", "data", "")
	f.Submit("job", mounting("data"))
	f.HubJobUntil("job", ferrytest.All(rigtest.Complete, ferrytest.IsAt("w2")))
}

// TestWaitForFirstConsumer has a Job wait until there is a volume that the worker's scheduler can
// bind to its claim.
func TestWaitForFirstConsumer(t *testing.T) {
	f := volumesFor(t)
	f.Apply(f.Cluster("w1"), f.NS, f.claim("data", ""))
	f.Submit("job", ferrytest.OnWorker("w1"), mounting("data"))
	f.EventUntil("job", "Pending", "node(s) didn't find available persistent volumes to bind")
	f.Apply(f.Cluster("w1"), "", f.volume("data", special))
	f.HubJobUntil("job", rigtest.Complete)
	claim, err := f.Cluster("w1").Client().CoreV1().PersistentVolumeClaims(f.NS).Get(f.Context(), "data", metav1.GetOptions{})
	if err != nil || claim.Spec.VolumeName != f.NS+"-data" {
		t.Errorf("bound to %q: %v", claim.Spec.VolumeName, err)
	}
}

// TestAttachedVolumes has a Job wait while a node has as many volumes attached as it can have.
func TestAttachedVolumes(t *testing.T) {
	f := volumesFor(t)
	f.Apply(f.Cluster("w1"), "", fmt.Sprintf(`
apiVersion: storage.k8s.io/v1
kind: CSINode
metadata: {name: %s}
spec: {drivers: [{name: %s.example.org, nodeID: node, topologyKeys: [], allocatable: {count: 1}}]}`, special, f.NS))
	f.bound("w1", "first", special)
	f.bound("w1", "second", special)
	f.Submit("first", ferrytest.OnWorker("w1"), mounting("first"), rigtest.RunForever())
	f.HubJobUntil("first", rigtest.Running(1))
	// Other nodes never suit it. They are left out, so that the event has the reason of this one.
	f.Submit("second", ferrytest.OnWorker("w1"), mounting("second"), func(j *batchv1.Job) {
		j.Spec.Template.Spec.NodeSelector = map[string]string{"tier": "special"}
	})
	f.EventUntil("second", "Pending", "node(s) exceed max volume count")
	f.Delete("first", metav1.DeletePropagationBackground)
	f.HubJobUntil("second", rigtest.Complete)
}

// special is a node of w1.
const special = "special-0"

// volumes has workers with a StorageClass of the test's own.
type volumes struct{ *ferrytest.Ferry }

func volumesFor(t *testing.T) volumes {
	f := volumes{ferrytest.For(t)}
	f.RunManager(func(o *manager.Options) { o.Timing.Recheck = time.Hour })
	f.Register("w1", "w2")
	for _, worker := range []string{"w1", "w2"} {
		f.NamespaceIn(worker)
		f.Apply(f.Cluster(worker), "", fmt.Sprintf(`
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: %s}
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: WaitForFirstConsumer`, f.NS))
	}
	return f
}

// bound gives a worker a claim, and a volume for it that a node can use; an empty one: every node.
func (f volumes) bound(worker, name, node string) {
	f.Apply(f.Cluster(worker), f.NS, f.volume(name, node)+"\n---\n"+f.claim(name, f.NS+"-"+name))
}

func (f volumes) claim(name, volume string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: %s}
spec: {storageClassName: %s, volumeName: %q, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}`, name, f.NS, volume)
}

func (f volumes) volume(name, node string) string {
	affinity := ""
	if node != "" {
		affinity = fmt.Sprintf(`
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [%s]}]}]}}`, node)
	}
	return fmt.Sprintf(`
apiVersion: v1
kind: PersistentVolume
metadata: {name: %[1]s-%[2]s}
spec:
  storageClassName: %[1]s
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  claimRef: {namespace: %[1]s, name: %[2]s}
  csi: {driver: %[1]s.example.org, volumeHandle: %[2]s}%[3]s`, f.NS, name, affinity)
}

func mounting(claim string) rigtest.Option {
	return func(j *batchv1.Job) {
		j.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}}}
	}
}
