package decoded

import (
	"encoding/json"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/jobferry/jobferry/pkg/util/jsonscan"
)

var specs = map[string]corev1.PodSpec{
	"one text":  {Containers: []corev1.Container{{Args: []string{strings.Repeat("x", 1_000_000)}}}},
	"texts":     {Containers: []corev1.Container{{Args: slices.Repeat([]string{"x"}, 100_000)}}},
	"variables": {Containers: []corev1.Container{{Env: slices.Repeat([]corev1.EnvVar{{Name: "x"}}, 50_000)}}},
	"volumes":   {Volumes: slices.Repeat([]corev1.Volume{{Name: "x"}}, 20_000)},
	"maps": {Containers: slices.Repeat([]corev1.Container{{Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: {}}}}}, 5000)},
}

// TestSizeIsEnough compares it with what decoding leaves in memory.
func TestSizeIsEnough(t *testing.T) {
	for name, spec := range specs {
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

// TestExactIsEnough compares it with all that decoding allocates.
func TestExactIsEnough(t *testing.T) {
	for name, spec := range specs {
		t.Run(name, func(t *testing.T) {
			job := &batchv1.Job{Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: spec}}}
			text, err := json.Marshal(job)
			if err != nil {
				t.Fatal(err)
			}
			var took int64
			for range 2 { // what is made once for a type isn't a Job's
				before := allocatedBytes()
				if err := jsonscan.Unmarshal(text, &batchv1.Job{}); err != nil {
					t.Fatal(err)
				}
				took = allocatedBytes() - before
			}
			size := Exact(job)
			t.Logf("it takes %d bytes, and the estimate is %d", took, size)
			if took > size+8<<10 || size > 4*took { // some KiB are the decoder's
				t.Errorf("it takes %d bytes, and the estimate is %d", took, size)
			}
		})
	}
}

func allocatedBytes() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.TotalAlloc) //nolint:gosec // not in the life of a test
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
