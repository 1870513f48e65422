package packed

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/mirrortest"
	"github.com/jobferry/jobferry/pkg/util/costtest"
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
	forgetRecent()
	return costtest.Heap()
}

// noise is a text of some size that can't be compressed.
func noise(i, bytes int) string {
	data := make([]byte, bytes*3/4)
	random := rand.NewChaCha8([32]byte{byte(i), byte(i >> 8)})
	_, _ = random.Read(data)
	return base64.RawURLEncoding.EncodeToString(data)
}

// many returns what a function makes of each of some numbers.
func many[T any](n int, of func(int) T) (all []T) {
	for i := range n {
		all = append(all, of(i))
	}
	return all
}

// change makes something of a tenant's Job large.
type change = func(i int, j *batchv1.Job)

func isSuspended(_ int, j *batchv1.Job) { j.Spec.Suspend = ptr.To(true) }

func hasEnded(_ int, j *batchv1.Job) {
	j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
}

func withLabels(i int, j *batchv1.Job) {
	text := noise(i, 9000*40)
	for k := range 9000 {
		j.Labels["kueue.x-k8s.io/"+text[k*40:k*40+20]] = text[k*40+20 : k*40+40]
	}
}

func withRecord(i int, j *batchv1.Job) { // as on a mirror
	for k, key := range many(4000, func(k int) string { return fmt.Sprintf("l%d", k) }) {
		j.Labels[key] = noise(i+k, 60)
	}
	keys, _ := json.Marshal(slices.Sorted(maps.Keys(j.Labels)))
	j.Annotations[v1alpha1.AnnotationProjected] = `{"scheduling":"s","resources":"r","labels":` + string(keys) + "}"
}

func withFinalizers(i int, j *batchv1.Job) {
	text := noise(i, 19_000*40)
	j.Finalizers = many(19_000, func(k int) string { return "example.com/" + text[k*40:k*40+40] })
}

func withOwners(i int, j *batchv1.Job) {
	text := noise(i, 7000*100)
	j.OwnerReferences = many(7000, func(k int) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: text[k*100 : k*100+100], UID: "u"}
	})
}

func withAnnotation(key string, bytes int) change {
	return func(i int, j *batchv1.Job) { j.Annotations[key] = noise(i, bytes) }
}

func keeping(key hubstate.Key, bytes int) change {
	return func(i int, j *batchv1.Job) { hubstate.Set(j, hubstate.Changes{key: noise(i, bytes)}) }
}

func withSelector(i int, j *batchv1.Job) {
	j.Spec.ManualSelector = ptr.To(true)
	j.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: metav1.LabelSelectorOpIn,
		Values: many(2000, func(k int) string { return noise(i+k, 60) })}}}
}

func withIndexes(i int, j *batchv1.Job) { j.Status.CompletedIndexes = noise(i, 240_000) }

// TestOneTenantsJobsTakeLittleMemory has a tenant make 700 Jobs of 1.4 MB, or many more small ones.
func TestOneTenantsJobsTakeLittleMemory(t *testing.T) {
	for name, row := range map[string]struct {
		jobs, bytes int
		changes     []change
		most        int64
	}{
		"suspended":       {700, 1_400_000, []change{isSuspended}, 4 << 20},
		"ended":           {700, 1_400_000, []change{hasEnded}, 4 << 20},
		"running":         {700, 1_400_000, nil, 40 << 20},
		"running, medium": {7000, 140_000, nil, 60 << 20},
		"not ours":        {700, 1_400_000, []change{func(_ int, j *batchv1.Job) { j.Spec.ManagedBy = nil }}, 4 << 20},

		"not ours, many finalizers": {60, 1000, []change{func(i int, j *batchv1.Job) {
			j.Spec.ManagedBy = nil
			withFinalizers(i, j)
			j.Finalizers = append(j.Finalizers, v1alpha1.FinalizerMirror)
		}}, 1 << 20},

		"suspended, many labels of Kueue's": {60, 1000, []change{isSuspended, withLabels}, 1 << 20},
		"suspended, with a record":          {60, 1000, []change{isSuspended, withRecord}, 1 << 20},
		"suspended, many finalizers":        {60, 1000, []change{isSuspended, withFinalizers}, 1 << 20},
		"suspended, many owners":            {60, 1000, []change{isSuspended, withOwners}, 1 << 20},
		"suspended, large selector":         {60, 1000, []change{isSuspended, withAnnotation(v1alpha1.AnnotationClusterSelector, 240_000)}, 1 << 20},
		"suspended, large preference":       {60, 1000, []change{isSuspended, withAnnotation(v1alpha1.AnnotationClusterPreference, 240_000)}, 1 << 20},
		"suspended, large placement":        {60, 1000, []change{isSuspended, keeping(hubstate.Cluster, 240_000)}, 1 << 20},
		"suspended, large shards":           {60, 1000, []change{isSuspended, keeping(hubstate.Shards, 240_000)}, 1 << 20},
		"suspended, medium selector":        {1000, 1000, []change{isSuspended, withAnnotation(v1alpha1.AnnotationClusterSelector, 60_000)}, 40 << 20},
		"suspended, small selector":         {20_000, 1000, []change{isSuspended, withAnnotation(v1alpha1.AnnotationClusterSelector, 4000)}, 44 << 20},
		"suspended, selects Pods":           {60, 1000, []change{isSuspended, withSelector}, 1 << 20},
		"ended, many finalizers":            {60, 1000, []change{hasEnded, withFinalizers}, 1 << 20},
		"ended, many indexes":               {60, 1000, []change{hasEnded, withIndexes}, 1 << 20},
		"running, many finalizers":          {300, 1000, []change{withFinalizers}, 40 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			h := NewHubJobs()
			keep := func(h *HubJobs, i int) any {
				j := hubJob("tenant", i, row.bytes)
				for _, change := range row.changes {
					change(i, j)
				}
				object, err := after(h.Transform)(j)
				if err != nil {
					t.Fatal(err)
				}
				return object
			}
			keep(NewHubJobs(), 0) // what is made once isn't a Job's
			var held []any
			before := heapBytes()
			for i := range row.jobs {
				held = append(held, keep(h, i))
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

// countingHandler counts the events that it gets.
type countingHandler struct{ events int }

func (c *countingHandler) OnAdd(any, bool)   { c.events++ }
func (c *countingHandler) OnUpdate(_, _ any) { c.events++ }
func (c *countingHandler) OnDelete(any)      { c.events++ }

// TestEventsOfLargeJobsAreCheap: a tenant edits one again and again, and all tenants share the
// handlers.
func TestEventsOfLargeJobsAreCheap(t *testing.T) {
	tolerations := hubJob("tenant", 0, 10)
	tolerations.Spec.Template.Spec.Tolerations = make([]corev1.Toleration, 130_000)
	for name, row := range map[string]struct {
		job  *batchv1.Job
		most int64
	}{
		"one text":     {hubJob("tenant", 0, 1_400_000), 12 << 20},
		"tiny terms":   {tinyJob("tenant", 0, 100_000), 64 << 10},
		"tolerations":  {tolerations, 64 << 10},
		"medium terms": {tinyJob("tenant", 0, 3000), 8 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			h := NewHubJobs()
			state := func(version string) any {
				j := row.job.DeepCopy()
				j.ResourceVersion = version
				object, err := after(h.Transform)(j)
				if err != nil {
					t.Fatal(err)
				}
				return object
			}
			before, now := state("1"), state("2")
			var counted countingHandler
			forgetRecent()
			allocated := allocatedBytes()
			Handler(&counted).OnUpdate(before, now)
			allocated = allocatedBytes() - allocated
			t.Logf("%d bytes of protobuf: the event takes %d KiB", row.job.Size(), allocated>>10)
			if allocated > row.most || counted.events != 1 {
				t.Errorf("%d events, which take %d bytes, want %d", counted.events, allocated, row.most)
			}
		})
	}
}

func allocatedBytes() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.TotalAlloc) //nolint:gosec // not in the life of a test
}

// BenchmarkTransform is of a Job of a tenant that decodes to much.
func BenchmarkTransform(b *testing.B) {
	h, job := NewHubJobs(), hubJob("tenant", 0, 10)
	job.Spec.Template.Spec.Tolerations = make([]corev1.Toleration, 130_000)
	for b.Loop() {
		if _, err := h.Transform(job.DeepCopy()); err != nil {
			b.Fatal(err)
		}
	}
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
	selective := func(bytes int) *batchv1.Job {
		j := hubJob("n", 4, 1000)
		j.Spec.Suspend, j.Annotations[v1alpha1.AnnotationClusterSelector] = ptr.To(true), noise(4, bytes)
		return j
	}
	for bytes, want := range map[int]bool{1000: false, 20_000: false, 60_000: true} {
		if j := hold(t, h, selective(bytes)); IsStub(j) != want || !mirror.Light(j) {
			t.Errorf("a selector of %d bytes: a stub: %t", bytes, IsStub(j))
		}
	}
	h.deleted(selective(1000))
	h.deleted(job(2))
	isLight("the second is gone", job(1), false)
	h.deleted(toolscache.DeletedFinalStateUnknown{Obj: job(1)})
	h.deleted(job(3))
	h.deleted(job(3))
	if len(h.sizes) != 0 || len(h.namespaces) != 0 || len(h.large) != 0 {
		t.Errorf("left: %v, %v, %v", h.sizes, h.namespaces, h.large)
	}
}

// TestInformersTransformTwice what they list: what is known of a Job stays.
func TestInformersTransformTwice(t *testing.T) {
	h := NewHubJobs()
	j := hubJob("n", 1, 1<<20)
	want := WeightOf(j)
	j.Spec.Suspend = ptr.To(true)
	once := hold(t, h, j)
	twice := hold(t, h, once.DeepCopy())
	if diff := cmp.Diff(once, twice); diff != "" {
		t.Errorf("-once +twice:\n%s", diff)
	}
	if got := h.Weight(j.UID); got < want {
		t.Errorf("the Job weighs %d, want %d", got, want)
	}
}
