package decoded

import (
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// TestSizeIsEnough compares it with what decoding leaves in memory.
func TestSizeIsEnough(t *testing.T) {
	for name, spec := range map[string]corev1.PodSpec{
		"one text":  {Containers: []corev1.Container{{Args: []string{strings.Repeat("x", 1_000_000)}}}},
		"texts":     {Containers: []corev1.Container{{Args: slices.Repeat([]string{"x"}, 100_000)}}},
		"variables": {Containers: []corev1.Container{{Env: slices.Repeat([]corev1.EnvVar{{Name: "x"}}, 50_000)}}},
		"volumes":   {Volumes: slices.Repeat([]corev1.Volume{{Name: "x"}}, 20_000)},
		"maps": {Containers: slices.Repeat([]corev1.Container{{Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: {}}}}}, 5000)},
	} {
		t.Run(name, func(t *testing.T) {
			job := &batchv1.Job{Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: spec}}}
			data, err := job.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			before := heapBytes()
			var read batchv1.Job
			if err := read.Unmarshal(data); err != nil {
				t.Fatal(err)
			}
			took, size := heapBytes()-before, Size(job)
			runtime.KeepAlive(&read)
			runtime.KeepAlive(data)
			if took > size || size > 12*took {
				t.Errorf("it takes %d bytes, and the estimate is %d", took, size)
			}
		})
	}
}

func TestMessageStopsAtItsLimit(t *testing.T) {
	job := &batchv1.Job{Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Volumes: make([]corev1.Volume, 10_000)}}}}
	data, err := job.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if size, _ := Message(reflect.TypeOf(job).Elem(), data, 1<<20); size <= 1<<20 || size > 2<<20 {
		t.Errorf("%d bytes", size)
	}
}

func heapBytes() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // no heap has 2^63 bytes
}
