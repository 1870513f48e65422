package dispatch_test

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/manager"
)

// TestDevices has Jobs ask for devices that a driver publishes (DRA): no node has them in its
// allocatable.
func TestDevices(t *testing.T) {
	f := ferrytest.For(t)
	f.RunManager(func(o *manager.Options) { o.Timing.Recheck = time.Hour })
	f.Register("w1")
	f.NamespaceIn("w1")
	gpu := corev1.ResourceName(f.NS + ".example.org/gpu")
	f.Submit("first", ferrytest.OnWorker("w1"), requesting(gpu, "1"), rigtest.RunForever())
	f.EventUntil("first", "Pending", "never fits: Insufficient "+string(gpu))
	publishDevice(f, gpu)
	f.HubJobUntil("first", rigtest.Running(1))

	f.Submit("second", ferrytest.OnWorker("w1"), requesting(gpu, "1"))
	f.EventUntil("second", "Pending", "cannot allocate all claims")
	f.Submit("third", ferrytest.OnWorker("w1"), claiming("one"))
	f.EventUntil("third", "Pending", `resourceclaimtemplate "one" not found`)
	f.Apply(f.Cluster("w1"), f.NS, fmt.Sprintf(`
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: %s}}]}}}`, f.NS))
	f.EventUntil("third", "Pending", "cannot allocate all claims")
	f.Delete("first", metav1.DeletePropagationBackground)
	for _, name := range []string{"second", "third"} {
		f.HubJobUntil(name, rigtest.Complete)
	}
}

// publishDevice has w1 have one device, of a class that stands for an extended resource.
func publishDevice(f *ferrytest.Ferry, resource corev1.ResourceName) {
	nodes, err := f.Cluster("w1").Client().CoreV1().Nodes().List(f.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) == 0 {
		panic(fmt.Sprint("nodes: ", err))
	}
	f.Apply(f.Cluster("w1"), "", fmt.Sprintf(`
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: %[1]s}
spec: {extendedResourceName: %[2]s, selectors: [{cel: {expression: 'device.driver == "%[1]s.example.org"'}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: %[1]s}
spec: {driver: %[1]s.example.org, nodeName: %[3]s, pool: {name: %[3]s, generation: 1, resourceSliceCount: 1}, devices: [{name: gpu-0}]}`,
		f.NS, resource, nodes.Items[0].Name))
}

// claiming makes Pods that have a device each, by a template.
func claiming(template string) rigtest.Option {
	return func(j *batchv1.Job) {
		spec := &j.Spec.Template.Spec
		spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: ptr.To(template)}}
		spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "gpu"}}
	}
}
