package job

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/line"
	"github.com/jobferry/jobferry/pkg/manager/packed"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// BenchmarkHeld is what the caches of the hub and of a worker, and the store of records, hold of
// one Job. What is known of its Pods is in BenchmarkMemory of package clusters.
func BenchmarkHeld(b *testing.B) {
	for name, end := range map[string]bool{"running": false, "finished": true} {
		b.Run(name, func(b *testing.B) {
			const jobs = 20_000
			var bytes, objects float64
			for range b.N {
				before := heap()
				h := newHeld()
				for i := range jobs {
					h.add(b, i, end)
				}
				after := heap()
				bytes += float64(after.HeapAlloc-before.HeapAlloc) / jobs
				objects += float64(after.HeapObjects-before.HeapObjects) / jobs
				runtime.KeepAlive(h)
			}
			b.ReportMetric(bytes/float64(b.N), "B/job")
			b.ReportMetric(objects/float64(b.N), "objects/job")
		})
	}
}

func heap() runtime.MemStats {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m
}

// held are the informers' stores and the store of records.
type held struct {
	hub, worker cache.Indexer
	records     *store
}

func newHeld() *held {
	stored := func() cache.Indexer {
		return cache.NewIndexer(cache.DeletionHandlingMetaNamespaceKeyFunc, cache.Indexers{})
	}
	return &held{stored(), stored(), newStore(line.NewRuntimes())}
}

// add adds a Job as the watches of hub and worker show it.
func (h *held) add(b *testing.B, number int, end bool) {
	b.Helper()
	job := aJob(fmt.Sprintf("render-frame-%06d", number))
	job.UID = types.UID(fmt.Sprintf("1d4f6a3e-0000-4000-8000-%012d", number))
	job.ResourceVersion, job.CreationTimestamp = fmt.Sprint(1_000_000+number), metav1.NewTime(noon)
	job.Finalizers = []string{v1alpha1.FinalizerMirror}
	job.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{batchv1.ControllerUidLabel: string(job.UID)}}
	m := mirror.Project(job, mirror.Target{Origin: "b7c0d1a2-0000-4000-8000-000000000001", Minor: 36})
	m.UID = types.UID(fmt.Sprintf("9a1c7e52-0000-4000-8000-%012d", number))
	m.ResourceVersion, m.CreationTimestamp = fmt.Sprint(2_000_000+number), metav1.NewTime(noon)
	m.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{batchv1.ControllerUidLabel: string(m.UID)}}
	for _, j := range []*batchv1.Job{job, m} {
		j.Status = statusAt(number, end)
	}
	hubstate.Set(job, hubstate.Changes{hubstate.Cluster: fmt.Sprintf("worker-%03d", number%100)})
	if end {
		hubstate.Set(job, hubstate.Changes{hubstate.Usage: fmt.Sprintf(
			`[{"worker":"worker-%03d","uid":"%s","requests":{"cpu":"1"},"seconds":%d,"succeeded":%d,"count":1}]`, number%100, m.UID, number%600, number%600)})
	}
	mirror.Slim(job)
	mirror.SlimMirror(m)
	for _, to := range []struct {
		store cache.Indexer
		job   *batchv1.Job
	}{{h.hub, job}, {h.worker, m}} {
		p, err := packed.Pack(to.job)
		if err != nil {
			b.Fatal(err)
		}
		if err := to.store.Add(p); err != nil {
			b.Fatal(err)
		}
	}
	h.records.observe(job.DeepCopy(), noon)
	h.records.observeMirror("worker", keyOf(m), m, nil, noon)
}

func statusAt(number int, end bool) batchv1.JobStatus {
	start := metav1.NewTime(noon.Add(time.Duration(number) * time.Second))
	status := batchv1.JobStatus{StartTime: &start, Active: 1, Ready: ptr.To[int32](1), Terminating: ptr.To[int32](0)}
	if !end {
		return status
	}
	done := metav1.NewTime(start.Add(time.Duration(number%600) * time.Second))
	status.Active, status.Ready, status.Succeeded, status.CompletionTime = 0, ptr.To[int32](0), 1, &done
	for _, is := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
		status.Conditions = append(status.Conditions, batchv1.JobCondition{
			Type: is, Status: corev1.ConditionTrue, LastProbeTime: done, LastTransitionTime: done,
			Reason: batchv1.JobReasonCompletionsReached, Message: "Reached expected number of succeeded pods",
		})
	}
	return status
}
