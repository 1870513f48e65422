package packed

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/mirrortest"
)

// hubJob is a Job of a tenant whose template has so many bytes.
func hubJob(namespace string, i, bytes int) *batchv1.Job {
	j := mirrortest.New(fmt.Sprint("j", i)).ManagedBy(v1alpha1.ManagedByDispatcher).Obj()
	j.Namespace, j.UID = namespace, types.UID(fmt.Sprint(namespace, i))
	j.Labels, j.Annotations = map[string]string{}, map[string]string{"theirs": strings.Repeat("x", bytes/10)}
	j.Spec.Template.Spec.Containers[0].Args = []string{strings.Repeat("x", bytes)}
	return j
}

func hold(t *testing.T, h *HubJobs, j *batchv1.Job) *batchv1.Job {
	t.Helper()
	object, err := h.Transform(j)
	if err != nil {
		t.Fatal(err)
	}
	switch held := object.(type) {
	case *Job:
		return held.Unpack()
	case *batchv1.Job:
		return held
	default:
		t.Fatalf("a Job became a %T", object)
		return nil
	}
}

func heapBytes() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // no heap has 2^63 bytes
}

// TestOneTenantsJobsTakeLittleMemory has a tenant make 700 Jobs of 1.4 MB, or many more small ones.
func TestOneTenantsJobsTakeLittleMemory(t *testing.T) {
	ended := func(j *batchv1.Job) {
		j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
	}
	for name, row := range map[string]struct {
		jobs, bytes int
		change      func(*batchv1.Job)
		most        int64
	}{
		"suspended":       {700, 1_400_000, func(j *batchv1.Job) { j.Spec.Suspend = ptr.To(true) }, 4 << 20},
		"ended":           {700, 1_400_000, ended, 4 << 20},
		"running":         {700, 1_400_000, func(*batchv1.Job) {}, 40 << 20},
		"running, medium": {7000, 140_000, func(*batchv1.Job) {}, 60 << 20},
		"not ours":        {700, 1_400_000, func(j *batchv1.Job) { j.Spec.ManagedBy = nil }, 4 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			h := NewHubJobs()
			var held []any
			before := heapBytes()
			for i := range row.jobs {
				j := hubJob("tenant", i, row.bytes)
				row.change(j)
				object, err := h.Transform(j)
				if err != nil {
					t.Fatal(err)
				}
				held = append(held, object)
			}
			bytes := heapBytes() - before
			t.Logf("%d Jobs are held in %d KiB", len(held), bytes>>10)
			if bytes > row.most {
				t.Errorf("%d Jobs are held in %d bytes, want %d", len(held), bytes, row.most)
			}
			if other := hold(t, h, hubJob("other", 0, 1000)); mirror.Light(other) {
				t.Error("another tenant's Job is held without its template")
			}
			runtime.KeepAlive(held)
		})
	}
}

// tinyJob is a Job whose template has so many elements, of some 14 bytes of protobuf each.
func tinyJob(namespace string, i, elements int) *batchv1.Job {
	j := hubJob(namespace, i, 10)
	term := corev1.PodAffinityTerm{TopologyKey: "a", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": ""}}}
	j.Spec.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: slices.Repeat([]corev1.PodAffinityTerm{term}, elements),
	}}
	return j
}

// TestJobsOfTinyElementsCountAsTheyAreUnpacked: packed, a thousand of them are nothing.
func TestJobsOfTinyElementsCountAsTheyAreUnpacked(t *testing.T) {
	h, before := NewHubJobs(), heapBytes()
	var held []*batchv1.Job
	for i := range 200 {
		j := tinyJob("tenant", i, 1000)
		if i == 0 {
			t.Logf("each has %d bytes of protobuf", j.Size())
		}
		if j = hold(t, h, j); !mirror.Light(j) {
			held = append(held, j)
		}
	}
	bytes := heapBytes() - before
	t.Logf("%d are held, and take %d KiB", len(held), bytes>>10)
	if len(held) < 5 || bytes > 33<<20 {
		t.Errorf("%d Jobs are held that take %d bytes, want 32 MiB at most", len(held), bytes)
	}
	runtime.KeepAlive(held)
}

// TestHowManyJobsAreHeldWhole has a tenant make Jobs that are nothing when they're
func TestHowManyJobsAreHeldWhole(t *testing.T) {
	for name, row := range map[string]struct{ bytes, jobs, whole int }{
		"50,000 usual ones":      {1000, 50_000, 50_000},
		"of nearly 64 KiB":       {55_000, 1000, 1000},
		"each more than 64 KiB":  {140_000, 400, 32 << 20 / 154_300},
		"each as large as it is": {1_400_000, 30, 32 << 20 / 1_540_300},
	} {
		t.Run(name, func(t *testing.T) {
			h, whole := NewHubJobs(), 0
			for i := range row.jobs {
				if !mirror.Light(hold(t, h, hubJob("tenant", i, row.bytes))) {
					whole++
				}
			}
			if whole != row.whole {
				t.Errorf("%d of %d Jobs are held with their templates, want %d", whole, row.jobs, row.whole)
			}
		})
	}
}

// TestHubJobsAreCounted follows the Jobs of a namespace that may hold two.
func TestHubJobsAreCounted(t *testing.T) {
	h := NewHubJobs()
	h.PerNamespace.Quantity = *resource.NewQuantity(250_000, resource.BinarySI)
	job := func(i int) *batchv1.Job { return hubJob("n", i, 100_000) }
	isLight := func(step string, j *batchv1.Job, want bool) {
		t.Helper()
		if got := mirror.Light(hold(t, h, j)); got != want {
			t.Errorf("%s: light: %t", step, got)
		}
	}
	suspended := job(1)
	suspended.Spec.Suspend = ptr.To(true)
	isLight("the first", job(1), false)
	isLight("the second", job(2), false)
	isLight("the third", job(3), true)
	isLight("the second again", job(2), false)
	isLight("the first is suspended", suspended, true)
	isLight("the third again", job(3), false)
	isLight("the first is resumed", job(1), true)
	h.OnDelete(job(2))
	isLight("the second is gone", job(1), false)
	h.OnDelete(toolscache.DeletedFinalStateUnknown{Obj: job(1)})
	h.OnDelete(job(3))
	h.OnDelete(job(3))
	if len(h.sizes) != 0 || len(h.namespaces) != 0 || len(h.large) != 0 {
		t.Errorf("left: %v, %v, %v", h.sizes, h.namespaces, h.large)
	}
}
