package jsonscan

import (
	"encoding/json"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// jobWith is a Job with so many of everything that lists and maps are in.
func jobWith(n int) *batchv1.Job {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "j", Labels: map[string]string{}, Finalizers: slices.Repeat([]string{"a/b"}, n)}}
	for i := range n {
		job.Labels[strings.Repeat("x", i+1)] = "v"
	}
	pod := &job.Spec.Template.Spec
	pod.Containers = slices.Repeat([]corev1.Container{{
		Name: "c", Args: slices.Repeat([]string{`"quoted\`}, n), Env: slices.Repeat([]corev1.EnvVar{{Name: "a"}}, n),
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}},
	}}, n)
	pod.Volumes = slices.Repeat([]corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
		Items: slices.Repeat([]corev1.KeyToPath{{Key: "k"}}, n)}}}}, n)
	return job
}

func TestUnmarshalReadsAsTheClientDoes(t *testing.T) {
	for name, text := range map[string]string{
		"a Job":          asJSON(t, jobWith(12)),
		"spaces":         ` { "spec" : { "template" : { "spec" : { "containers" : [ { "args" : [ "a" , "b" ] } , null ] } } } } `,
		"nothing":        `{}`,
		"null":           `{"metadata":{"labels":null},"spec":{"template":{"spec":{"containers":null,"affinity":null,"volumes":[]}}}}`,
		"unknown fields": `{"future":[{"a":[1]}],"spec":{"future":{"template":{}},"template":{"spec":{"containers":[{"name":"a"}]}}}}`,
		"no Job":         `{"spec":{"template":{"spec":{"containers":[1,2]}}}}`,
		"no JSON":        `{"spec":{"template":{"spec":{"containers":[{"name":`,
	} {
		t.Run(name, func(t *testing.T) {
			var want, got batchv1.Job
			wantErr, err := utiljson.Unmarshal([]byte(text), &want), Unmarshal([]byte(text), &got)
			if (err != nil) != (wantErr != nil) {
				t.Errorf("got error %v, want %v", err, wantErr)
			}
			if diff := cmp.Diff(&want, &got); diff != "" && err == nil {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestListsAreMadeOfTheirLengths: while they grow, they take five times as much.
func TestListsAreMadeOfTheirLengths(t *testing.T) {
	sources := make([]corev1.VolumeProjection, 100_000)
	job := &batchv1.Job{}
	job.Spec.Template.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: sources}}}}
	text := []byte(asJSON(t, job))
	if err := Unmarshal(text, &batchv1.Job{}); err != nil { // it makes what is made once for a type
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var read batchv1.Job
	if err := Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if took, want := after.TotalAlloc-before.TotalAlloc, uint64(len(sources)*48*11/10); took > want {
		t.Errorf("it takes %d bytes, want %d", took, want)
	}
	if got := len(read.Spec.Template.Spec.Volumes[0].Projected.Sources); got != len(sources) {
		t.Errorf("%d sources", got)
	}
}

func TestMember(t *testing.T) {
	const text = `{"a": {"b": [1, {"c": "]"}], "\u0063": null}, "d": "}"}`
	for path, want := range map[string]string{
		"": text, "a.b": `[1, {"c": "]"}]`, "a.c": "null", "d": `"}"`, "a.d": "", "d.e": "", "a.b.c": "",
	} {
		names := strings.FieldsFunc(path, func(r rune) bool { return r == '.' })
		if got := string(Member([]byte(text), names...)); got != want {
			t.Errorf("%q: got %q, want %q", path, got, want)
		}
	}
}

// valuesIn counts the values in a tree.
func valuesIn(v any) int {
	n := 1
	switch v := v.(type) {
	case map[string]any:
		for _, below := range v {
			n += valuesIn(below)
		}
	case []any:
		for _, below := range v {
			n += valuesIn(below)
		}
	}
	return n
}

// FuzzScanner compares the values with those of the tree; what isn't JSON ends.
func FuzzScanner(f *testing.F) {
	for _, seed := range []string{`{"a":[1,-2.5e3,"x\"]",true,null,{}],"b":{"c":[]}}`, ` [ ] `, `{"a"`, `[}`, `{:,]`, `"\`, `[1 2`, "\x00", `{"a":}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		n := New(text).Values()
		var into batchv1.Job
		_ = Unmarshal(text, &into)
		var tree any
		if utiljson.Unmarshal(text, &tree) == nil && valuesIn(tree) > n { // a name that is there twice is once in the tree
			t.Errorf("%d values in %q, want %d", n, text, valuesIn(tree))
		}
	})
}
