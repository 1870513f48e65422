package job

import (
	"fmt"
	"maps"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/placement"
	"github.com/jobferry/jobferry/pkg/placement/placementtest"
)

// newCrowdedWorld has full workers of 99 nodes with 8 CPUs each. In each of them the Job "part"
// holds one CPU, and "runs-0" to "runs-48" hold two nodes each.
func newCrowdedWorld(tb testing.TB, workers int) *world {
	w := newWorld(tb)
	clear(w.workers)
	for i := range workers {
		v := w.addWorker(fmt.Sprintf("w%d", i), 8)
		v.idle = true
		v.connect()
		v.ledger.DeleteNode("node")
		for n := range 99 {
			v.ledger.SetNode(placementtest.NewNode(fmt.Sprintf("node-%02d", n)).Has("cpu", "8", "memory", "64Gi", "pods", "110").Obj())
		}
		for n := range 49 {
			v.holds(fmt.Sprintf("runs-%d", n), 8, 2)
		}
		v.holds("last", 6, 1)
		v.holds("filler", 1, 1)
		v.holds("part", 1, 1)
	}
	return w
}

// holds has a Job hold room for so many Pods with so many CPUs each.
func (v *fakeWorker) holds(name string, cpu int, pods int64) {
	job := aJob(name, cpus(fmt.Sprint(cpu)))
	v.ledger.Reserve(inTeam(name), placement.ShapeOf(&job.Spec.Template), pods)
}

// waits submits Jobs that find no room.
func (w *world) waits(n int, each func(i int) *batchv1.Job) {
	w.Helper()
	for i := range n {
		w.submits(each(i))
		if i%300 == 0 {
			w.run()
		}
	}
	w.step(time.Minute)
	if waits := len(maps.Collect(w.line.Waits())); waits != n {
		w.fail("%d Jobs wait, want %d", waits, n)
	}
	w.log, w.queue.requests = nil, nil
}

// frees ends a Job that holds room, and has those that wait looked at.
func (w *world) frees(worker, name string) {
	w.worker(worker).ledger.Release(inTeam(name))
	w.looks()
}

// looks has those that wait looked at until no more can be said.
func (w *world) looks() {
	for more := true; more; more = !w.line.IsAtRest() {
		w.clock.Step(time.Second)
	}
}

// asked is when each Job that waits was judged last.
func (w *world) asked() map[string]uint64 {
	all := map[string]uint64{}
	for key, wait := range w.line.Waits() {
		all[key.Name] = wait.Judged
	}
	return all
}

// judgements counts the Jobs that were judged, those that go, and those that were enqueued.
type judgements struct{ judged, went, enqueued int }

// count adds what has happened since a time when Jobs were asked.
func (l *judgements) count(w *world, before map[string]uint64) {
	l.enqueued += len(w.queue.requests)
	for key, wait := range w.line.Waits() {
		if wait.Judged != before[key.Name] {
			l.judged++
		}
		if !wait.InLine {
			l.went++
		}
	}
}

// crowd makes Jobs that wait.
type crowd func(i int) *batchv1.Job

func ofSevenShapes(i int) *batchv1.Job {
	return aJob(fmt.Sprintf("job-%05d", i), pods(int32(1+i%100)), cpus(fmt.Sprint(2+i%7)))
}

func ofOwnShape(i int) *batchv1.Job {
	job := aJob(fmt.Sprintf("job-%05d", i), pods(int32(1+i%100)), cpus(fmt.Sprintf("%dm", 2000+i%6000)))
	job.Spec.Template.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory] = resource.MustParse(fmt.Sprint(i))
	return job
}

func neverFits(i int) *batchv1.Job {
	return aJob(fmt.Sprintf("job-%05d", i), pods(int32(1+i%100)), cpus("100"))
}

// ofQuota are Jobs for which a quota leaves nothing, ofDevices such for which there are none,
// ofExtended such that request a resource that no node has, and nearOthers such that want to be
// near Pods that don't run.
func ofQuota(i int) *batchv1.Job    { return aJob(fmt.Sprintf("job-%05d", i)) }
func nearOthers(i int) *batchv1.Job { return aJob(fmt.Sprintf("job-%05d", i), near) }

func ofDevices(i int) *batchv1.Job {
	job := aJob(fmt.Sprintf("job-%05d", i))
	job.Spec.Template.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: ptr.To("gpu")}}
	return job
}

func ofExtended(i int) *batchv1.Job {
	job := aJob(fmt.Sprintf("job-%05d", i))
	container := &job.Spec.Template.Spec.Containers[0].Resources
	container.Requests["example.com/gpu"] = resource.MustParse("1")
	container.Limits = corev1.ResourceList{"example.com/gpu": resource.MustParse("1")}
	return job
}

// noQuota leaves nothing of a quota in a worker.
func noQuota(v *fakeWorker) {
	one := corev1.ResourceList{corev1.ResourceRequestsCPU: resource.MustParse("1")}
	quota := &corev1.ResourceQuota{Status: corev1.ResourceQuotaStatus{Hard: one, Used: one}}
	quota.Name = "quota"
	v.quotas = []*corev1.ResourceQuota{quota}
}

// noDevices has a worker know what ofDevices asks for, and have none.
func noDevices(v *fakeWorker) {
	template, class := &resourcev1.ResourceClaimTemplate{}, &resourcev1.DeviceClass{}
	template.Namespace, template.Name, class.Name = jobKey.Namespace, "gpu", "gpu"
	template.Spec.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{
		DeviceClassName: class.Name, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1,
	}}}
	v.devices = placementtest.NewDevices(placementtest.DeviceObjects{
		Classes: []*resourcev1.DeviceClass{class}, Templates: []*resourcev1.ResourceClaimTemplate{template},
		Lasts: func(types.UID) bool { return false }, Minor: 36,
	})
}

func noMore(*fakeWorker) {}

// Of the Jobs that wait, those are judged and enqueued that go, and no others.
func TestOnlyWhoGoesIsJudged(t *testing.T) {
	for name, job := range map[string]crowd{"of seven shapes": ofSevenShapes, "each of its own shape": ofOwnShape} {
		t.Run(name, func(t *testing.T) {
			w := newCrowdedWorld(t, 3)
			w.waits(200, job)
			all := 0
			for n := range 30 {
				worker, ends, before, l := fmt.Sprintf("w%d", n%3), fmt.Sprintf("runs-%d", n), w.asked(), judgements{}
				if n%2 > 0 {
					ends = "part"
				}
				w.frees(worker, ends)
				l.count(w, before)
				if l.judged != l.went || l.enqueued != l.went {
					w.fail("%s ends in %s: %+v", ends, worker, l)
				}
				all += l.went
				w.run()
				w.worker(worker).holds("part", 1, 1)
			}
			if all < 10 {
				w.fail("%d Jobs went, which shows little", all)
			}
		})
	}
}

// BenchmarkJobsThatWait has 10,000 Jobs that wait for 10 full workers, and room that is freed in
// one of them.
func BenchmarkJobsThatWait(b *testing.B) {
	for _, c := range []struct {
		name    string
		jobs    crowd
		happens incident
		lacks   func(*fakeWorker)
	}{
		{"seven shapes, none goes", ofSevenShapes, room, noMore},
		{"seven shapes, some go", ofSevenShapes, someRoom, noMore},
		{"each its own shape, none goes", ofOwnShape, room, noMore},
		{"each its own shape, some go", ofOwnShape, someRoom, noMore},
		{"none ever fits", neverFits, room, noMore},
		{"none ever fits, and a node comes", neverFits, node, noMore},
		{"no quota is left", ofQuota, room, noQuota},
		{"there are no devices", ofDevices, room, noDevices},
		{"no node has the extended resource", ofExtended, room, noMore},
		{"there are no Pods to be near", nearOthers, room, noMore},
	} {
		b.Run(c.name, func(b *testing.B) {
			w := newCrowdedWorld(b, 10)
			for _, v := range w.workers {
				c.lacks(v)
			}
			benchmarkLooks(b, w, c.jobs, c.happens)
		})
	}
}

// incident is what happens to a worker, the nth time.
type incident func(w *world, worker string, n int)

// someRoom is enough for some Jobs, and room for none.
func someRoom(w *world, worker string, n int) { w.frees(worker, fmt.Sprintf("runs-%d", n/10)) }
func room(w *world, worker string, _ int)     { w.frees(worker, "part") }

func node(w *world, worker string, n int) {
	w.worker(worker).ledger.SetNode(placementtest.NewNode(fmt.Sprintf("new-%d", n)).Has("cpu", "1", "memory", "64Gi", "pods", "110").Obj())
	w.looks()
}

func benchmarkLooks(b *testing.B, w *world, jobs crowd, happens incident) {
	const waiters = 10_000
	n, l := 0, judgements{}
	w.waits(waiters, jobs)
	for b.Loop() {
		b.StopTimer()
		worker := fmt.Sprintf("w%d", n%10)
		before := w.asked()
		b.StartTimer()
		happens(w, worker, n)
		b.StopTimer()
		l.count(w, before)
		w.run()
		w.worker(worker).holds("part", 1, 1)
		n++
		b.StartTimer()
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(n)/waiters, "µs/Job")
	b.ReportMetric(float64(l.judged)/float64(n), "judged/op")
	b.ReportMetric(float64(l.went)/float64(n), "went/op")
}
