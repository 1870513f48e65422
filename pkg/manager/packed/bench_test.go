package packed

import (
	"fmt"
	"runtime"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// usual is a Job as a user submits it, with the defaults of the API server.
func usual(i int) *batchv1.Job {
	job := running()
	job.Name, job.ResourceVersion = fmt.Sprintf("job-%d", i), fmt.Sprint(i)
	job.Spec.Template.Spec = corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, DNSPolicy: corev1.DNSClusterFirst, SchedulerName: corev1.DefaultSchedulerName,
		SecurityContext: &corev1.PodSecurityContext{},
		Containers: []corev1.Container{{
			Name: "main", Image: "registry.example.org/team/main:v1", Command: []string{"sh", "-c", "sleep 1"},
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi"),
			}},
			TerminationMessagePath: corev1.TerminationMessagePathDefault, TerminationMessagePolicy: corev1.TerminationMessageReadFile,
			ImagePullPolicy: corev1.PullIfNotPresent,
		}},
	}
	return job
}

// BenchmarkHeld is what one Job of a cache takes of the heap: packed, and as it was decoded.
func BenchmarkHeld(b *testing.B) {
	decoded := func(job *batchv1.Job) any { return pack(b, job).Unpack() }
	for name, of := range map[string]func(*batchv1.Job) any{
		"packed": func(job *batchv1.Job) any { return pack(b, decoded(job).(*batchv1.Job)) }, "decoded": decoded,
	} {
		b.Run(name, func(b *testing.B) {
			const jobs = 5000
			var bytes, objects float64
			for range b.N {
				held := make([]any, 0, jobs)
				before := heap()
				for i := range jobs {
					held = append(held, of(usual(i)))
				}
				after := heap()
				bytes += float64(after.HeapAlloc-before.HeapAlloc) / jobs
				objects += float64(after.HeapObjects-before.HeapObjects) / jobs
				runtime.KeepAlive(held)
			}
			b.ReportMetric(bytes/float64(b.N), "B/job")
			b.ReportMetric(objects/float64(b.N), "objects/job")
		})
	}
}

func heap() runtime.MemStats {
	forgetRecent()
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m
}

func BenchmarkUnpack(b *testing.B) {
	p := pack(b, usual(1))
	forgetRecent()
	b.ReportAllocs()
	for b.Loop() {
		p.Unpack()
	}
}

func BenchmarkPack(b *testing.B) {
	job := usual(1)
	b.ReportAllocs()
	for b.Loop() {
		pack(b, job)
	}
}
