package mirror

import (
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror/recentfields"
)

// wholeWith is a hub Job with recent fields: one of the spec, and one of the container.
func wholeWith(t *testing.T, hub *batchv1.Job, ofSpec, ofContainer any) *Whole {
	t.Helper()
	sent := treeOf(hub)
	spec := sent["spec"].(map[string]any)
	if ofSpec != nil {
		spec["future"] = ofSpec
	}
	if ofContainer != nil {
		pod := spec["template"].(map[string]any)["spec"].(map[string]any)
		pod["containers"].([]any)[0].(map[string]any)["future"] = ofContainer
	}
	whole, err := NewWhole(mustMarshal(sent))
	if err != nil {
		t.Fatal(err)
	}
	return whole
}

// storedMirror is the mirror of a hub Job with recent fields, as the types see it, and all of it.
func storedMirror(t *testing.T, whole *Whole) (*batchv1.Job, map[string]any) {
	t.Helper()
	object, err := whole.Mirror(mirrorOf(whole.Job, aTarget))
	if err != nil {
		t.Fatal(err)
	}
	m := &batchv1.Job{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, m); err != nil {
		t.Fatal(err)
	}
	return m, object
}

func TestDriftOfRecentFields(t *testing.T) {
	const ofSpec, ofContainer = "spec.future", "spec.template.spec.containers[*].future"
	value := map[string]any{"a": int64(1), "b": int64(1)}
	for name, row := range map[string]struct {
		ofSpec, ofContainer any // that the hub has now
		unread              bool
		hub, mirror         change
		want                string
	}{
		"the same":                             {ofSpec: value, ofContainer: "x"},
		"changed":                              {ofSpec: map[string]any{"a": int64(1)}, ofContainer: "x", mirror: running, want: "PatchRecent " + ofSpec},
		"gone":                                 {ofContainer: "x", mirror: running, want: "PatchRecent " + ofSpec},
		"in a list":                            {ofSpec: value, ofContainer: "y", mirror: running, want: "Note " + ofContainer},
		"both":                                 {ofSpec: "new", ofContainer: "y", mirror: running, want: "PatchRecent " + ofSpec + " Note " + ofContainer},
		"other changes go first":               {ofSpec: "new", ofContainer: "x", mirror: running, hub: suspend, want: "spec.suspend"},
		"while it stops":                       {ofSpec: value, ofContainer: "y", mirror: both(running, suspend), hub: suspend, want: "Note " + ofContainer},
		"resumed while it stops":               {ofSpec: value, ofContainer: "y", mirror: both(running, suspend), want: "Note " + ofContainer},
		"stopped":                              {ofSpec: value, ofContainer: "y", mirror: halted, hub: suspend, want: "Recreate " + ofContainer},
		"stopped, and resumed":                 {ofSpec: "new", ofContainer: "x", mirror: halted, want: "Recreate " + ofSpec},
		"not read":                             {unread: true, ofSpec: "new", ofContainer: "x", mirror: running},
		"ended":                                {ofSpec: "new", ofContainer: "x", mirror: trueFor(batchv1.JobComplete, "", "", noon)},
		"a node selector, which is in no list": {ofSpec: value, ofContainer: "x", mirror: halted, hub: both(suspend, zone("a")), want: "Recreate spec.template"},
		"a node selector, while the Pods run":  {ofSpec: value, ofContainer: "x", mirror: running, hub: zone("a"), want: "spec.suspend"},
		"the record is gone":                   {ofSpec: value, ofContainer: "x", mirror: both(running, func(j *batchv1.Job) { delete(j.Annotations, v1alpha1.AnnotationProjected) }), want: "metadata.annotations"},
	} {
		t.Run(name, func(t *testing.T) {
			m, _ := storedMirror(t, wholeWith(t, job().Obj(), value, "x"))
			hub := job().Generation(2).Obj()
			for _, c := range []struct {
				change change
				job    *batchv1.Job
			}{{row.hub, hub}, {row.mirror, m}} {
				if c.change != nil {
					c.change(c.job)
				}
			}
			target := aTarget
			if now := wholeWith(t, hub, row.ofSpec, row.ofContainer); !row.unread {
				target.Recent = &now.Recent
			}
			if got := describeRecent(Drift(hub, m, target)); got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

func describeRecent(a Action) string {
	words := []string{describe(a)}
	var notes []Note
	switch a := a.(type) {
	case PatchRecent:
		words, notes = append([]string{"PatchRecent"}, a.Fields...), a.Notes
	case None:
		words, notes = nil, a.Notes
	}
	for _, n := range notes {
		words = append(words, "Note", n.Field)
	}
	return strings.Join(words, " ")
}

// TestPatchRecent: what is in a field is replaced as a whole, and recorded; then nothing drifts.
func TestPatchRecent(t *testing.T) {
	m, object := storedMirror(t, wholeWith(t, job().Obj(), map[string]any{"a": int64(1), "b": int64(1)}, "x"))
	running(m)
	hub := job().Generation(2).Obj()
	now := wholeWith(t, hub, map[string]any{"a": int64(2)}, "y")
	target := aTarget
	target.Recent = &now.Recent
	patch, ok := Drift(hub, m, target).(PatchRecent)
	if !ok {
		t.Fatalf("got %+v", Drift(hub, m, target))
	}
	object["metadata"].(map[string]any)["uid"] = string(m.UID)
	object = applyJSON(t, object, patch.Bytes(now, m))
	if diff := cmp.Diff(map[string]any{"a": int64(2)}, object["spec"].(map[string]any)["future"]); diff != "" {
		t.Error(diff)
	}
	after := &batchv1.Job{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, after); err != nil {
		t.Fatal(err)
	}
	if generation, _ := WrittenFor(after); generation != 2 {
		t.Errorf("recorded: generation %d", generation)
	}
	if got := describeRecent(Drift(hub, after, target)); got != "Note spec.template.spec.containers[*].future" {
		t.Errorf("then %q", got)
	}
	without := recentfields.Fingerprints{"spec.template.spec.containers[*].future": now.Recent["spec.template.spec.containers[*].future"]}
	target.Recent = &without
	removal := Drift(hub, after, target).(PatchRecent)
	object = applyJSON(t, object, removal.Bytes(wholeWith(t, hub, nil, "y"), after))
	if _, has := object["spec"].(map[string]any)["future"]; has {
		t.Error("a field that is gone on the hub stays")
	}
}

func applyJSON(t *testing.T, object map[string]any, data []byte) map[string]any {
	t.Helper()
	patch, err := jsonpatch.DecodePatch(data)
	if err != nil {
		t.Fatal(err)
	}
	text, err := patch.Apply(mustMarshal(object))
	if err != nil {
		t.Fatal(err)
	}
	var after map[string]any
	if err := utiljson.Unmarshal(text, &after); err != nil {
		t.Fatal(err)
	}
	return after
}
