package devices

import (
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/util/costtest"

	"github.com/jobferry/jobferry/pkg/placement/internal/scheduling"
)

// manyHeld has claims of very many devices of a pool that all nodes reach, and of nodes.
func manyHeld(claims int) Objects {
	o := worker()
	o.Slices[0].Spec.NodeName, o.Slices[0].Spec.AllNodes = nil, ptr.To(true)
	for i := range claims {
		o.allocated([]string{"a", "b"}[i%2], "x", "lasts")
		results := &o.Claims[i].Status.Allocation.Devices.Results
		for k := range resourcev1.AllocationResultsMaxSize {
			*results = append(*results, (*results)[0])
			(*results)[k].Device = fmt.Sprintf("d%d-%d", i, k)
		}
		*results = (*results)[1:]
	}
	return o
}

// The devices that are held are work for the first Job, and aren't copied for the others.
func TestManyHeldDevicesAreWork(t *testing.T) {
	const claims = 1000
	d := New(manyHeld(claims))
	judge := func(lightly bool) (*scheduling.Job, scheduling.Answer) {
		var nodes []*corev1.Node
		for i := range 20 {
			nodes = append(nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i)}})
			nodes[i].Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("4"), "pods": resource.MustParse("10")}
		}
		snapshot := scheduling.NewSnapshot(nodes, nil, nil)
		snapshot.Devices = d
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "job"}}
		job.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main"}}
		asking("1")(&job.Spec.Template.Spec)
		j := scheduling.NewJob(job)
		if lightly {
			j.Lightly()
		}
		return j, j.Judge(snapshot, 3)
	}
	j, a := judge(false)
	expect(t, a, scheduling.FitsNow, 2)
	cost := costtest.Of(func() { j, a = judge(true) })
	if !j.TooMuch() || cost > 4<<20 {
		t.Errorf("the next one takes %v of the work and %d KiB, and fits %d times", j.Work(), cost>>10, a.Now)
	}
	d = New(manyHeld(claims))
	if cost := costtest.Of(func() { j, _ = judge(true) }); !j.TooMuch() || cost > 4<<20 {
		t.Errorf("the first one takes %v of the work, and %d KiB", j.Work(), cost>>10)
	}
}

// Without the claims of one Job is what there would be if it had none, and isn't read anew.
func TestWithoutClaims(t *testing.T) {
	o := manyHeld(1000)
	own := *o.Slices[1]
	own.Spec.NodeName, own.Spec.Pool.Name = ptr.To("c"), "c"
	o.Slices = append(o.Slices, &own)
	o.allocated("c", "gpu-0", "own")
	o.allocated("c", "gpu-1", "own")
	d := New(o)
	owned := d.AllocatedBy(func(c *resourcev1.ResourceClaim) (job types.NamespacedName) {
		if c.Status.ReservedFor[0].UID == "own" {
			job.Name = "own"
		}
		return job
	})
	var without *Devices
	if cost := costtest.Of(func() { without = d.Without(owned[types.NamespacedName{Name: "own"}]) }); cost > 1<<20 {
		t.Errorf("to leave out two claims takes %d KiB", cost>>10)
	}
	o.Claims = o.Claims[:1000]
	want := New(o)
	for _, h := range []struct{ is, want *holding }{{without.now, want.now}, {without.idle, want.idle}} {
		if h.is.results() != h.want.results() || h.is.results() == 0 || h.is.alike["c"] != d.idle.alike["c"] {
			t.Errorf("%d devices are held, want %d; %v, want %v", h.is.results(), h.want.results(), h.is.alike, d.idle.alike)
		}
	}
	if len(without.claims) != 1000 || len(d.claims) != 1002 || d.now.results() != 32_002 {
		t.Errorf("%d claims are left of %d", len(without.claims), len(d.claims))
	}
}
