package devices

import (
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/placement/internal/scheduling"
)

// BenchmarkJudge asks for one device for each Pod of a Job, of nodes that have 8.
func BenchmarkJudge(b *testing.B) {
	for _, size := range []struct{ nodes, pods int64 }{{100, 1}, {100, 100}, {100, 801}, {1000, 1}, {1000, 8001}} {
		o := worker()
		o.Slices = nil
		var nodes []*corev1.Node
		for i := range size.nodes {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i)}}
			node.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("100"), "pods": resource.MustParse("100")}
			nodes = append(nodes, node)
			slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node.Name}, Spec: resourcev1.ResourceSliceSpec{
				Driver: "example.com", NodeName: ptr.To(node.Name), Pool: resourcev1.ResourcePool{Name: node.Name, ResourceSliceCount: 1},
			}}
			for d := range 8 {
				slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{Name: fmt.Sprint("gpu-", d)})
			}
			o.Slices = append(o.Slices, slice)
		}
		d := New(o)
		snapshot := scheduling.NewSnapshot(nodes, nil, nil)
		snapshot.Devices = d
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "job"}}
		job.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main"}}
		asking("1")(&job.Spec.Template.Spec)
		asked := scheduling.NewJob(job)
		b.Run(fmt.Sprintf("%d Pods on %d nodes", size.pods, size.nodes), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				asked.Judge(snapshot, size.pods)
			}
		})
	}
}
