package feed

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/clusters/internal/link"
	"github.com/jobferry/jobferry/pkg/manager/packed"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// forged is a Job with this hub's labels that somebody made in a worker; its template has so many
// bytes.
func forged(i, bytes int) *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "tenant", Name: fmt.Sprint("j", i), ResourceVersion: fmt.Sprint(i + 2),
			Labels:      map[string]string{v1alpha1.LabelOrigin: "origin", "theirs": strings.Repeat("x", 63)},
			Annotations: map[string]string{v1alpha1.AnnotationHubUID: "any", "theirs": strings.Repeat("x", bytes/10)},
		},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: "c", Args: []string{strings.Repeat("x", bytes)}}},
		}}},
	}
}

// heap is what is in use now.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// takeAll takes objects until one isn't taken, and returns those that were, and the heap that they
// take.
func takeAll(into *intake, objects int, made func(int) object) (taken []object, bytes int64, err error) {
	into.clear()
	before := heap()
	for i := range objects {
		o, failed := into.take(made(i))
		if err = failed; err != nil {
			break
		}
		if o != nil {
			taken = append(taken, o)
		}
	}
	bytes = int64(heap()) - int64(before) //nolint:gosec // no heap has 2^63 bytes
	runtime.KeepAlive(taken)
	return taken, bytes, err
}

// TestForgedMirrorsTakeLittleMemory has somebody in a worker make Jobs with this hub's labels.
func TestForgedMirrorsTakeLittleMemory(t *testing.T) {
	into := mirrorIntake(func() int { return DefaultMaxMirrors })
	for name, row := range map[string]struct {
		jobs  int
		job   func(int) object
		held  int
		bytes int64
		full  bool
	}{
		"700 of 1.4 MB":           {700, func(i int) object { return forged(i, 1_400_000) }, 700, 4 << 20, false},
		"without the hub's UID":   {700, func(i int) object { j := forged(i, 100); j.Annotations = nil; return j }, 0, 1 << 20, false},
		"many of a common size":   {100_000, func(i int) object { return forged(i, 1000) }, 25_001, 150 << 20, true},
		"many of the largest":     {10_000, func(i int) object { return forged(i, 60_000) }, 10_000, 150 << 20, false},
		"many with large records": {10_000, func(i int) object { return withLargeRecord(forged(i, 100)) }, 1000, 200 << 20, true},
	} {
		t.Run(name, func(t *testing.T) {
			taken, bytes, err := takeAll(into, row.jobs, row.job)
			t.Logf("%d Jobs are held in %d KiB", len(taken), bytes>>10)
			var broken *link.BoundError
			if full := errors.As(err, &broken); full != row.full || full && broken.Reason != v1alpha1.ReasonTooManyMirrors {
				t.Errorf("error: %v", err)
			}
			if len(taken) < row.held || row.full && len(taken) > max(row.held, 2000) || bytes > row.bytes {
				t.Errorf("%d are held in %d bytes, want %d in %d", len(taken), bytes, row.held, row.bytes)
			}
		})
	}
}

// withLargeRecord names a large annotation in the record, so that it's held.
func withLargeRecord(job *batchv1.Job) *batchv1.Job {
	job.Annotations["kept"] = strings.Repeat("x", 100_000)
	job.Annotations[v1alpha1.AnnotationProjected] = `{"annotations":["kept"],"scheduling":"s","resources":"r"}`
	return job
}

func manyLabels(n int) map[string]string {
	labels := map[string]string{}
	for i := range n {
		labels[fmt.Sprint(strings.Repeat("x", 250), "/", i)] = strings.Repeat("x", 63)
	}
	return labels
}

// TestManyPodsTakeLittleMemory has a worker report a million Pods, and large ones.
func TestManyPodsTakeLittleMemory(t *testing.T) {
	into := podIntake()
	mounts := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{}}
	for name, pod := range map[string]func(int) object{
		"a million": func(i int) object { return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("p", i)}} },
		"large": func(i int) object {
			return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprint("p", i), Labels: manyLabels(3000),
			}}
		},
		"with volumes": func(i int) object {
			return &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("p", i)},
				Spec:       corev1.PodSpec{Volumes: slices.Repeat([]corev1.Volume{{VolumeSource: mounts}}, 1000)},
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			taken, bytes, err := takeAll(into, 1_000_000, pod)
			t.Logf("%d Pods are held in %d KiB", len(taken), bytes>>10)
			if excess := (*excessError)(nil); !errors.As(err, &excess) || len(taken) > maxPods || bytes > 160<<20 {
				t.Errorf("%d Pods are held in %d bytes: %v", len(taken), bytes, err)
			}
		})
	}
}

// TestManyNodesTakeLittleMemory has a worker report nodes with many resources and labels.
func TestManyNodesTakeLittleMemory(t *testing.T) {
	resources := func(n int, amount string) corev1.ResourceList {
		list := corev1.ResourceList{}
		for i := range n {
			list[corev1.ResourceName(fmt.Sprint("e/", i))] = resource.MustParse(amount)
		}
		return list
	}
	few := map[string]string{}
	for i := range 1000 {
		few[fmt.Sprint(i)] = ""
	}
	for name, node := range map[string]corev1.Node{
		"of many resources": {Status: corev1.NodeStatus{Allocatable: resources(64, "1")}},
		"of some resources": {Status: corev1.NodeStatus{Allocatable: resources(16, "1")}},
		"of long amounts":   {Status: corev1.NodeStatus{Allocatable: resources(64, "123456789012345678901234567890.123")}},
		"of many labels":    {ObjectMeta: metav1.ObjectMeta{Labels: few}},
	} {
		t.Run(name, func(t *testing.T) {
			node.Name = "node"
			sent, err := node.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			taken, bytes, err := takeAll(nodeIntake(), 20_000, func(i int) object {
				var decoded corev1.Node
				if err := decoded.Unmarshal(sent); err != nil {
					t.Fatal(err)
				}
				decoded.Name = fmt.Sprint("n", i)
				return &decoded
			})
			t.Logf("%d nodes are held in %d KiB", len(taken), bytes>>10)
			if excess := (*excessError)(nil); !errors.As(err, &excess) || bytes > maxNodeBytes*5/4 || bytes < maxNodeBytes/2 {
				t.Errorf("%d nodes are held in %d bytes: %v", len(taken), bytes, err)
			}
		})
	}
}

// TestTheTimesOfManyPodsTakeLittleMemory has a worker report Pods with long texts.
func TestTheTimesOfManyPodsTakeLittleMemory(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	for name, row := range map[string]struct {
		change func(*corev1.Pod)
		held   int // 0: none, since no API server stores such names
	}{
		"common":          {func(*corev1.Pod) {}, maxTimes},
		"a long UID":      {func(p *corev1.Pod) { p.UID += types.UID(long) }, 0},
		"a long name":     {func(p *corev1.Pod) { p.Name += long }, 0},
		"a long owner":    {func(p *corev1.Pod) { p.OwnerReferences[0].UID += types.UID(long) }, 100},
		"a long node":     {func(p *corev1.Pod) { p.Spec.NodeName = long }, 0},
		"an owner's name": {func(p *corev1.Pod) { p.OwnerReferences[0].Name = long }, maxTimes},
	} {
		t.Run(name, func(t *testing.T) {
			pods := 2000 // each of which is as any other
			if row.held > 0 {
				pods = 200_000
			}
			taken, bytes, err := takeAll(timesIntake(nil)(), pods, func(i int) object {
				p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
					Namespace: "namespace-of-a-tenant", Name: fmt.Sprintf("a-job-of-some-tenant-%d-abcde", i), ResourceVersion: fmt.Sprint(i),
					UID: types.UID(fmt.Sprintf("01234567-89ab-cdef-0123-%012d", i)),
					OwnerReferences: []metav1.OwnerReference{{
						APIVersion: "batch/v1", Kind: "Job", Name: "a-job-of-some-tenant", Controller: ptr.To(true),
						UID: types.UID(fmt.Sprintf("11234567-89ab-cdef-0123-%012d", i)),
					}},
				}}
				p.Spec.NodeName, p.Status.Phase = "a-node-of-some-pool-0", corev1.PodSucceeded
				row.change(p)
				return p
			})
			t.Logf("%d Pods are held in %d KiB", len(taken), bytes>>10)
			if row.held == 0 && len(taken) == 0 && err == nil {
				return
			}
			if excess := (*excessError)(nil); !errors.As(err, &excess) || row.held == 0 || len(taken) < row.held || len(taken) > maxTimes || bytes > 256<<20 {
				t.Errorf("%d Pods are held in %d bytes, want %d: %v", len(taken), bytes, row.held, err)
			}
		})
	}
}

// TestAnotherUIDOfAName has a worker change the UIDs of Pods, which are kept by them.
func TestAnotherUIDOfAName(t *testing.T) {
	pod := func(uid types.UID) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "n", Name: "p", UID: uid, OwnerReferences: []metav1.OwnerReference{{Kind: "Job", UID: "j", Controller: ptr.To(true)}},
		}}
	}
	for name, into := range map[string]*intake{"unfinished": podIntake(), "times": timesIntake(nil)()} {
		t.Run(name, func(t *testing.T) {
			for _, kind := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted} {
				into.clear()
				if _, err := into.take(pod("former")); err != nil {
					t.Fatal(err)
				}
				if _, pass, err := into.pass(watch.Event{Type: kind, Object: pod("latter")}); pass || err == nil {
					t.Errorf("%s is passed: %t, %v", kind, pass, err)
				}
				if _, pass, err := into.pass(watch.Event{Type: watch.Deleted, Object: pod("former")}); !pass || err != nil {
					t.Errorf("its own deletion after %s is passed: %t, %v", kind, pass, err)
				}
				if _, pass, err := into.pass(watch.Event{Type: watch.Added, Object: pod("latter")}); !pass || err != nil {
					t.Errorf("its successor is passed: %t, %v", pass, err)
				}
			}
		})
	}
}

// TestAnIntakeCountsWhatIsHeld follows one Job through a watch.
func TestAnIntakeCountsWhatIsHeld(t *testing.T) {
	into := mirrorIntake(func() int { return 1 }) // which holds two
	into.clear()
	ours, strangers := forged(1, 10), forged(1, 10)
	strangers.Annotations = nil
	for i, step := range []struct {
		event watch.EventType
		job   *batchv1.Job
		want  watch.EventType // empty: nothing
		held  int
	}{
		{watch.Added, strangers, "", 0},
		{watch.Deleted, strangers, "", 0},
		{watch.Added, ours, watch.Added, 1},
		{watch.Modified, ours, watch.Modified, 1},
		{watch.Modified, strangers, watch.Deleted, 0},
		{watch.Modified, strangers, "", 0},
		{watch.Modified, ours, watch.Modified, 1},
		{watch.Added, forged(2, 10), watch.Added, 2},
		{watch.Added, forged(3, 10), watch.Error, 2},
		{watch.Modified, ours, watch.Modified, 2},
		{watch.Deleted, ours, watch.Deleted, 1},
		{watch.Added, forged(3, 10), watch.Added, 2},
	} {
		event, pass, err := into.pass(watch.Event{Type: step.event, Object: step.job.DeepCopy()})
		got := event.Type
		if err != nil {
			got = watch.Error
		} else if !pass {
			got = ""
		}
		if got != step.want || into.held() != step.held {
			t.Errorf("step %d: %q, %d are held; want %q, %d", i, got, into.held(), step.want, step.held)
		}
	}
	if _, pass, err := into.pass(watch.Event{Type: watch.Added, Object: &corev1.Pod{}}); pass || err != nil {
		t.Errorf("a Pod among Jobs: %t, %v", pass, err)
	}
}

// TestAnObjectThatCantBeRead: what a worker has made up, and makes whoever reads it panic, isn't
// held, and others are.
func TestAnObjectThatCantBeRead(t *testing.T) {
	into := mirrorIntake(func() int { return DefaultMaxMirrors })
	slim := into.slim
	into.slim = func(o object) (object, bool) {
		if o.GetGenerateName() != "" {
			panic("made up")
		}
		return slim(o)
	}
	into.clear()
	bad := func(i int) *batchv1.Job {
		job := forged(i, 10)
		job.GenerateName = "made up"
		return job
	}
	for i, step := range []struct {
		event watch.EventType
		job   *batchv1.Job
		pass  bool
		held  int
	}{
		{watch.Added, bad(1), false, 0},
		{watch.Added, forged(2, 10), true, 1},
		{watch.Modified, bad(2), true, 0},
		{watch.Added, forged(3, 10), true, 1},
		{watch.Deleted, bad(3), true, 0},
	} {
		event, pass, err := into.pass(watch.Event{Type: step.event, Object: step.job})
		if job, is := event.Object.(*packed.Job); is && step.held == 0 && job.Unpack().Annotations != nil {
			t.Errorf("step %d: more than names is passed on", i)
		}
		if pass != step.pass || into.held() != step.held || err != nil {
			t.Errorf("step %d: passed: %t, %d are held, %v", i, pass, into.held(), err)
		}
	}
}

// TestAListIsReadInPages: what an honest API server has too much of for one page comes in smaller
// ones, those after it in larger ones, and an answer that never ends is noticed.
func TestAListIsReadInPages(t *testing.T) {
	into := mirrorIntake(func() int { return DefaultMaxMirrors })
	jobs := make([]batchv1.Job, 20)
	for i := range jobs {
		jobs[i] = *forged(i, 100)
	}
	var limits []int64
	list, err := listAll(t.Context(), metav1.ListOptions{ResourceVersion: "0"}, into, func(_ context.Context, o metav1.ListOptions) (apiruntime.Object, error) {
		limits = append(limits, o.Limit)
		if o.Limit > 7 {
			return nil, fmt.Errorf("read: %w", &link.BoundError{Reason: v1alpha1.ReasonAnswerTooLarge})
		}
		from := 0
		_, _ = fmt.Sscan(o.Continue, &from)
		page := &batchv1.JobList{Items: jobs[from:min(from+int(o.Limit), len(jobs))]}
		if end := from + len(page.Items); end < len(jobs) {
			page.Continue = fmt.Sprint(end)
		}
		if o.ResourceVersion != "" {
			t.Errorf("a page of resource version %q is asked for", o.ResourceVersion)
		}
		return page, nil
	})
	if err != nil || into.held() != len(jobs) {
		t.Fatalf("%d are held of %T: %v", into.held(), list, err)
	}
	if want := "[500 62 7 14 1 2 4 8 1 2 4]"; fmt.Sprint(limits) != want {
		t.Errorf("limits %v, want %s", limits, want)
	}
	_, err = listAll(t.Context(), metav1.ListOptions{}, into, func(context.Context, metav1.ListOptions) (apiruntime.Object, error) {
		return &batchv1.JobList{ListMeta: metav1.ListMeta{Continue: "more"}}, nil
	})
	if err == nil || !strings.Contains(err.Error(), "empty page") {
		t.Errorf("a list of empty pages: %v", err)
	}
}

func TestALightMirrorIsStillOurs(t *testing.T) {
	job := forged(0, 1_400_000)
	o, hold := slimMirror(job)
	small, ok := o.(*batchv1.Job)
	if !hold || !ok || !mirror.Light(small) || mirror.Owns("origin", "any", small) != mirror.Ours {
		t.Errorf("held: %t, %+v", hold, o)
	}
}

// A worker's nodes and Pods are of very many messages of two bytes each. Plain ones count as they
// did.
func TestManySmallMessagesCount(t *testing.T) {
	const many = 100_000
	node := &corev1.Node{Spec: corev1.NodeSpec{Taints: make([]corev1.Taint, many)}}
	pod := &corev1.Pod{Spec: corev1.PodSpec{Tolerations: make([]corev1.Toleration, many)}}
	for size, o := range map[uintptr]object{unsafe.Sizeof(corev1.Taint{}): node, unsafe.Sizeof(corev1.Toleration{}): pod} {
		if got, takes := heldBytes(o), int64(many*size); got < takes/3 {
			t.Errorf("%T of %d bytes takes %d KiB, and counts %d KiB", o, o.Size(), takes>>10, got>>10)
		}
	}
	plain := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node", Labels: map[string]string{corev1.LabelHostname: "node", corev1.LabelTopologyZone: "a"}}}
	if got, want := heldBytes(plain), structBytes+int64(plain.Size()); got != want {
		t.Errorf("a plain node counts %d, not %d", got, want)
	}
}
