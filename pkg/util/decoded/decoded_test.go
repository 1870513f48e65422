package decoded

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/jobferry/jobferry/pkg/util/costtest"
	"github.com/jobferry/jobferry/pkg/util/jsonscan"
)

var specs = map[string]corev1.PodSpec{
	"one text":  {Containers: []corev1.Container{{Args: []string{strings.Repeat("x", 1_000_000)}}}},
	"texts":     {Containers: []corev1.Container{{Args: slices.Repeat([]string{"x"}, 100_000)}}},
	"variables": {Containers: []corev1.Container{{Env: slices.Repeat([]corev1.EnvVar{{Name: "x"}}, 50_000)}}},
	"volumes":   {Volumes: slices.Repeat([]corev1.Volume{{Name: "x"}}, 20_000)},
	"groups":    {SecurityContext: &corev1.PodSecurityContext{SupplementalGroups: make([]int64, 500_000)}},
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
			before := costtest.Heap()
			var read batchv1.Job
			if err := read.Unmarshal(data); err != nil {
				t.Fatal(err)
			}
			took, size := costtest.Heap()-before, Size(job)
			runtime.KeepAlive(&read)
			runtime.KeepAlive(data)
			if took > size || size > 12*took {
				t.Errorf("it takes %d bytes, and the estimate is %d", took, size)
			}
		})
	}
}

// Numbers of a list may be packed: a byte becomes eight.
func TestPackedNumbersCount(t *testing.T) {
	const count = 1_000_000
	packed := append([]byte{4<<3 | 2, 0xc0, 0x84, 0x3d}, make([]byte, count)...) // supplementalGroups
	var read corev1.PodSecurityContext
	isCounted(t, &read, packed, 4)
	if len(read.SupplementalGroups) != count {
		t.Fatal(len(read.SupplementalGroups))
	}
}

// A list of texts that is a type of its own, as users' attributes are, counts by its items.
func TestNamedListsCount(t *testing.T) {
	const count = 500_000
	extra := map[string]authenticationv1.ExtraValue{"x": make([]string, count)}
	data, err := (&authenticationv1.UserInfo{Extra: extra}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	var read authenticationv1.UserInfo
	isCounted(t, &read, data, 12)
	if len(read.Extra["x"]) != count {
		t.Fatal(len(read.Extra["x"]))
	}
}

// isCounted reads a message, and compares the estimate with what that leaves in memory, which is so
// many times as much at most.
func isCounted(t *testing.T, read interface{ Unmarshal([]byte) error }, data []byte, times int64) {
	t.Helper()
	before := costtest.Heap()
	if err := read.Unmarshal(data); err != nil {
		t.Fatal(err)
	}
	took := costtest.Heap() - before
	size, _ := Message(reflect.TypeOf(read).Elem(), data, math.MaxInt64)
	runtime.KeepAlive(read)
	runtime.KeepAlive(data)
	if took > size || size > times*took {
		t.Errorf("it takes %d bytes, and the estimate is %d", took, size)
	}
}

// Each list of numbers that an API has counts.
func TestAllListsOfNumbersCount(t *testing.T) {
	eachField(t, func(of reflect.Type, f reflect.StructField, number uint32) {
		if f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() < reflect.Complex64 && f.Type.Elem().Kind() != reflect.Uint8 &&
			fieldsOf(of)[number].number != int64(f.Type.Elem().Size()) { //nolint:gosec // a number's size
			t.Errorf("%v.%s doesn't count", of, f.Name)
		}
	})
}

// Each map that an API has counts by what it takes, with one entry or many. Each entry is written
// with as few bytes as can be.
func TestAllMapsCount(t *testing.T) {
	type message interface{ Unmarshal([]byte) error }
	known := map[reflect.Type]bool{}
	eachField(t, func(of reflect.Type, f reflect.StructField, number uint32) {
		if _, is := reflect.New(of).Interface().(message); f.Type.Kind() != reflect.Map || known[f.Type] || !is {
			return
		}
		known[f.Type] = true
		for _, entries := range []int{1, 8, 9, 15, 29, 1000} {
			var data []byte
			for i := range entries {
				name := strconv.Itoa(i)[min(1, 1/entries):]
				data = append(binary.AppendUvarint(data, uint64(number)<<3|2), byte(len(name)+2), 1<<3|2, byte(len(name)))
				data = append(data, name...)
			}
			reads := make([]message, 1+2000/entries)
			for i := range reads {
				reads[i], _ = reflect.New(of).Interface().(message)
			}
			before := costtest.Heap()
			for _, read := range reads {
				if err := read.Unmarshal(data); err != nil {
					t.Fatal(err)
				}
			}
			took := (costtest.Heap() - before) / int64(len(reads))
			size, _ := Message(of, data, math.MaxInt64)
			runtime.KeepAlive(reads)
			if took > size || size > 4*took {
				t.Errorf("%v.%s with %d entries: it takes %d bytes, and the estimate is %d", of, f.Name, entries, took, size)
			}
		}
	})
	if !known[reflect.TypeFor[map[resourcev1.QualifiedName]resourcev1.DeviceAttribute]()] {
		t.Errorf("%d maps are known", len(known))
	}
}

// eachField visits the fields of all messages of Kubernetes' APIs.
func eachField(t *testing.T, visit func(of reflect.Type, f reflect.StructField, number uint32)) {
	t.Helper()
	known := map[reflect.Type]bool{}
	var visitType func(reflect.Type)
	visitType = func(of reflect.Type) {
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice || of.Kind() == reflect.Map {
			of = of.Elem()
		}
		if of.Kind() != reflect.Struct || known[of] {
			return
		}
		known[of] = true
		for i := range of.NumField() {
			f := of.Field(i)
			visitType(f.Type)
			if number, is := numberIn(f.Tag.Get("protobuf")); is {
				visit(of, f, number)
			}
		}
	}
	for _, of := range scheme.Scheme.AllKnownTypes() {
		visitType(of)
	}
	if len(known) < 1000 || !known[reflect.TypeFor[corev1.PodSecurityContext]()] {
		t.Errorf("%d types are known", len(known))
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
