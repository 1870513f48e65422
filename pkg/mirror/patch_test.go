package mirror

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// apply is RFC 7386.
func apply(object, patch map[string]any) map[string]any {
	if object == nil {
		object = map[string]any{}
	}
	for key, value := range patch {
		switch value := value.(type) {
		case nil:
			delete(object, key)
		case map[string]any:
			below, _ := object[key].(map[string]any)
			object[key] = apply(below, value)
		default:
			object[key] = value
		}
	}
	return object
}

func applyBytes(t *testing.T, job *batchv1.Job, patch []byte) *batchv1.Job {
	t.Helper()
	var p map[string]any
	if err := json.Unmarshal(patch, &p); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(apply(treeOf(job), p))
	if err != nil {
		t.Fatal(err)
	}
	var out batchv1.Job
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return &out
}

// A patch does what it says, and after it nothing is left to do.
func TestPatchIsEnough(t *testing.T) {
	hub := job().Label("a", "1").Label("b", "2").Annotation("c", "3").Suspend(true).Do(func(j *batchv1.Job) {
		j.Spec.ActiveDeadlineSeconds = ptr.To[int64](1 << 60)
		j.Spec.Template.Spec.Affinity = &corev1.Affinity{
			NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{}},
			PodAffinity:  &corev1.PodAffinity{},
		}
	}).Obj()
	m := mirrorOf(hub, aTarget)
	m.Labels["theirs"] = "x"
	hub.Labels, hub.Annotations = map[string]string{"b": "3"}, nil
	for _, c := range []change{resume, zone("a"), cpu("1500m"), func(j *batchv1.Job) { j.Spec.Template.Spec.Affinity.NodeAffinity = nil }} {
		c(hub)
	}
	patch, ok := Drift(hub, m, aTarget).(Patch)
	if !ok {
		t.Fatalf("got %+v", patch)
	}
	after := applyBytes(t, m, patch.Bytes())
	if again := Drift(hub, after, aTarget); describe(again) != "" || len(patch.Unmet(after)) > 0 {
		t.Errorf("then %+v, unmet %v", again, patch.Unmet(after))
	}
	if diff := cmp.Diff(map[string]string{"b": "3", "theirs": "x", v1alpha1.LabelOrigin: "hub-a"}, after.Labels); diff != "" {
		t.Error(diff)
	}
	if _, there := after.Annotations["c"]; there {
		t.Error("an annotation removed on the hub stays")
	}
	if got := after.Spec.Template; got.Labels[batchv1.ControllerUidLabel] != "uid-mirror" || got.Spec.Affinity.NodeAffinity != nil || got.Spec.Affinity.PodAffinity == nil {
		t.Errorf("template %+v", got)
	}
	if *after.Spec.ActiveDeadlineSeconds != 1<<60 {
		t.Errorf("a large number came out as %d", *after.Spec.ActiveDeadlineSeconds)
	}
}

func TestPatchPreconditions(t *testing.T) {
	hub := job().Obj()
	m := mirrorOf(hub, aTarget)
	suspend(hub)
	scalar := Drift(hub, m, aTarget).(Patch)
	if got, want := string(scalar.Bytes()), `{"metadata":{"uid":"uid-mirror"},"spec":{"suspend":true}}`; got != want {
		t.Errorf("got %s", got)
	}
	suspend(m)
	zone("a")(hub)
	if got := string(Drift(hub, m, aTarget).(Patch).Bytes()); !strings.Contains(got, `"resourceVersion":"7"`) {
		t.Errorf("got %s", got)
	}
	next := hub.Status
	next.Active = 1
	if got, want := string(StatusPatch(hub, &next, hub.Finalizers)), `{"metadata":{"resourceVersion":"1","uid":"uid-job"},"status":{"active":1}}`; got != want {
		t.Errorf("got %s", got)
	}
}

// A worker that keeps changing a field back.
func TestUnmet(t *testing.T) {
	hub := job().Obj()
	m := mirrorOf(hub, aTarget)
	m.Spec.Parallelism, m.Spec.TTLSecondsAfterFinished = ptr.To[int32](1), ptr.To[int32](60)
	patch := Drift(hub, m, aTarget).(Patch)
	after := applyBytes(t, m, patch.Bytes())
	after.Spec.TTLSecondsAfterFinished = ptr.To[int32](60)
	want := []Note{{"spec.ttlSecondsAfterFinished", "changed back by the worker's admission"}}
	if diff := cmp.Diff(want, patch.Unmet(after)); diff != "" {
		t.Error(diff)
	}
}

// What a worker makes up, and can't be encoded in JSON, is noted: in a mirror in which nothing else
// is to be changed, in one that a patch is for, and in the answer to a patch.
func TestWhatCantBeEncoded(t *testing.T) {
	hub := job().Obj()
	madeUp := func(m *batchv1.Job) *batchv1.Job {
		m = m.DeepCopy()
		m.Spec.Template.Spec.Containers[0].LivenessProbe = &corev1.Probe{
			ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.IntOrString{Type: 2}}},
		}
		return m
	}
	note := Note{"spec", notEncoded}
	m := mirrorOf(hub, aTarget)
	if got, ok := Drift(hub, madeUp(m), aTarget).(None); !ok || !slices.Contains(got.Notes, note) {
		t.Errorf("the mirror: %+v", got)
	}
	m.Spec.Parallelism = ptr.To[int32](1)
	if got := Drift(hub, madeUp(m), aTarget); got != Action(Refuse(note)) {
		t.Errorf("the mirror of a patch: %+v", got)
	}
	patch := Drift(hub, m, aTarget).(Patch)
	patch.Fields = append(patch.Fields, "spec.template") // as if it changed
	if got := patch.Unmet(madeUp(m)); !slices.Contains(got, note) {
		t.Errorf("the answer: %+v", got)
	}
}

// A worker's answer to a patch has a very long list, which isn't read as values of JSON: they take
// several times the memory of the Job.
func TestUnmetOfALargeAnswer(t *testing.T) {
	hub := job().Obj()
	m := mirrorOf(hub, aTarget)
	m.Spec.Parallelism = ptr.To[int32](1)
	patch := Drift(hub, m, aTarget).(Patch)
	after := applyBytes(t, m, patch.Bytes())
	after.Spec.Template.Spec.ReadinessGates = make([]corev1.PodReadinessGate, 100_000)
	after.ManagedFields = make([]metav1.ManagedFieldsEntry, 100_000)
	after.Status.Conditions = make([]batchv1.JobCondition, 100_000)
	for _, path := range []string{"spec.parallelism", "spec.template"} { // as if it changed
		patch.Fields = append(patch.Fields, path)
		var notes []Note
		if n := testing.AllocsPerRun(1, func() { notes = patch.Unmet(after) }); n > 10_000 || len(notes) > 0 {
			t.Errorf("%s: %.0f allocations, %v", path, n, notes)
		}
	}
}

func TestDeadlineOfMovedJob(t *testing.T) {
	hub := job().Do(func(j *batchv1.Job) { j.Spec.ActiveDeadlineSeconds = ptr.To[int64](100) }).Obj()
	m := mirrorOf(hub, Target{Origin: "hub-a", DeadlineSpent: 30 * time.Second})
	if *m.Spec.ActiveDeadlineSeconds != 70 || describe(Drift(hub, m, aTarget)) != "" {
		t.Errorf("deadline %d, drift %+v", *m.Spec.ActiveDeadlineSeconds, Drift(hub, m, aTarget))
	}
	suspend(hub)
	after := applyBytes(t, m, Drift(hub, m, aTarget).(Patch).Bytes())
	if *after.Spec.ActiveDeadlineSeconds != 100 {
		t.Errorf("after a suspension the deadline is %d", *after.Spec.ActiveDeadlineSeconds)
	}
	resume(hub)
	if got := Drift(hub, after, aTarget).(Patch).Fields; !slices.Equal(got, []string{"spec.suspend"}) {
		t.Errorf("the resumption changes %v", got)
	}
}

var anyTree = rapid.Custom(func(t *rapid.T) map[string]any { return drawTree(t, 2) })

func drawTree(t *rapid.T, depth int) map[string]any {
	out := map[string]any{}
	for _, key := range []string{"a", "b", "c"} {
		switch kind := rapid.IntRange(0, 4).Draw(t, key); {
		case kind == 0:
		case kind == 1 && depth > 0:
			out[key] = drawTree(t, depth-1)
		case kind == 2:
			out[key] = []any{"x", map[string]any{"y": "z"}}
		default:
			out[key] = json.Number(rapid.SampledFrom([]string{"1", "2"}).Draw(t, "number"))
		}
	}
	return out
}

// Applying the difference to the one gives the other, and equal things don't differ.
func TestMergeDiffLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from, to := anyTree.Draw(t, "from"), anyTree.Draw(t, "to")
		diff := mergeDiff(from, to)
		if len(mergeDiff(to, to)) != 0 {
			t.Errorf("%v differs from itself", to)
		}
		if left := unmet(diff, to); len(left) > 0 {
			t.Errorf("%v isn't met by its own target: %v", diff, left)
		}
		if d := cmp.Diff(to, apply(from, diff)); d != "" {
			t.Error(d)
		}
	})
}
