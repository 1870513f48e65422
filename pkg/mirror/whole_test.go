package mirror

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// TestAMirrorLosesNoField: random Jobs, with all the fields that the types know, and others at any
// place.
func TestAMirrorLosesNoField(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typed := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "train", UID: "u", Generation: 3}}
		fill(t, reflect.ValueOf(&typed.Spec).Elem(), 0)
		sent := treeOf(typed)
		future := sprinkle(t, "spec", sent["spec"])
		whole, err := NewWhole(mustMarshal(sent))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range future {
			if _, found := whole.Recent[withoutIndexes(path)]; !found && !belowRecent(whole, path) {
				t.Errorf("%s isn't found in %v", path, whole.Recent)
			}
		}
		target := Target{Origin: "hub-a", Suspended: rapid.Bool().Draw(t, "suspended")}
		if rapid.Bool().Draw(t, "embedded") {
			target.JobController = v1alpha1.JobControllerEmbedded
		}
		m := Project(whole.Job, target)
		got, err := whole.Mirror(m)
		if err != nil {
			t.Fatal(err)
		}
		checkTyped(t, m, got, whole)
		lost := notIn("spec", sent["spec"], got["spec"])
		lost = slices.DeleteFunc(lost, func(path string) bool { return isOfTheHub(whole.Job, path) })
		if len(lost) > 0 {
			t.Errorf("lost: %v", lost)
		}
	})
}

// checkTyped: the types see the mirror as it was projected, but for its record.
func checkTyped(t *rapid.T, m *batchv1.Job, got map[string]any, whole *Whole) {
	var seen batchv1.Job
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(got, &seen); err != nil {
		t.Fatal(err)
	}
	if !RecentFields(&seen).Equal(whole.Recent) {
		t.Errorf("recorded: %v, want %v", RecentFields(&seen), whole.Recent)
	}
	if generation, _ := WrittenFor(&seen); generation != whole.Job.Generation {
		t.Errorf("recorded: generation %d", generation)
	}
	seen.Annotations[v1alpha1.AnnotationProjected] = m.Annotations[v1alpha1.AnnotationProjected]
	if !equality.Semantic.DeepEqual(m, &seen) {
		t.Errorf("the types see another mirror:\n%s", cmp.Diff(m, &seen))
	}
}

// isOfTheHub reports whether a field isn't a mirror's, or is another one there.
func isOfTheHub(hub *batchv1.Job, path string) bool {
	for _, field := range []string{"ttlSecondsAfterFinished", "managedBy", "suspend", "activeDeadlineSeconds"} {
		if path == "spec."+field {
			return true
		}
	}
	return !manualSelector(hub) && (strings.HasPrefix(path, "spec.selector") || path == "spec.manualSelector")
}

// belowRecent reports whether a path is in a field that is recent itself.
func belowRecent(w *Whole, path string) bool {
	for parent := range w.Recent {
		if strings.HasPrefix(withoutIndexes(path), parent+".") || strings.HasPrefix(withoutIndexes(path), parent+"[") {
			return true
		}
	}
	return false
}

func withoutIndexes(path string) string {
	for i := range 3 {
		path = strings.ReplaceAll(path, fmt.Sprintf("[%d]", i), "[*]")
	}
	return path
}

// notIn returns the paths of values that another tree hasn't.
func notIn(path string, value, other any) (lost []string) {
	switch value := value.(type) {
	case map[string]any:
		object, is := other.(map[string]any)
		if !is {
			return []string{path}
		}
		for name, below := range value {
			lost = append(lost, notIn(path+"."+name, below, object[name])...)
		}
		return lost
	case []any:
		list, _ := other.([]any)
		if len(list) != len(value) {
			return []string{path}
		}
		for i := range value {
			lost = append(lost, notIn(fmt.Sprintf("%s[%d]", path, i), value[i], list[i])...)
		}
		return lost
	default:
		if !reflect.DeepEqual(value, other) {
			return []string{path}
		}
		return nil
	}
}

// sprinkle adds fields that no release has to the objects in a tree, and returns their paths.
func sprinkle(t *rapid.T, path string, value any) (added []string) {
	switch value := value.(type) {
	case map[string]any:
		for _, name := range sortedNames(value) {
			added = append(added, sprinkle(t, path+"."+name, value[name])...)
		}
		if isObject(path) && rapid.IntRange(0, 3).Draw(t, "future") == 0 {
			value["future"] = map[string]any{"a": rapid.Int64().Draw(t, "a"), "l": []any{"x"}}
			added = append(added, path+".future")
		}
	case []any:
		for i := range value {
			added = append(added, sprinkle(t, fmt.Sprintf("%s[%d]", path, i), value[i])...)
		}
	}
	return added
}

// isObject reports whether a path is not that of a map with keys of the user.
func isObject(path string) bool {
	for _, of := range []string{"abels", "nnotations", "requests", "limits", "nodeSelector", "overhead", "options", "ttributes"} {
		if strings.HasSuffix(path, of) {
			return false
		}
	}
	return true
}

func sortedNames(m map[string]any) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// fill sets random values: to any depth that a Job's spec has.
func fill(t *rapid.T, v reflect.Value, depth int) {
	switch v.Interface().(type) {
	case resource.Quantity:
		v.Set(reflect.ValueOf(resource.MustParse(rapid.SampledFrom([]string{"1", "100m", "2Gi"}).Draw(t, "quantity"))))
		return
	case intstr.IntOrString:
		v.Set(reflect.ValueOf(rapid.SampledFrom([]intstr.IntOrString{intstr.FromInt32(80), intstr.FromString("http")}).Draw(t, "port")))
		return
	case metav1.ObjectMeta:
		v.Set(reflect.ValueOf(metav1.ObjectMeta{Labels: map[string]string{"team": "a"}, Annotations: map[string]string{"about": "it"}}))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if rapid.IntRange(0, 2+depth).Draw(t, "set") == 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(t, v.Elem(), depth+1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i), depth)
		}
	case reflect.Slice:
		n := max(rapid.IntRange(-depth, 2).Draw(t, "elements"), 0)
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(t, v.Index(i), depth+1)
		}
	case reflect.Map:
		if rapid.Bool().Draw(t, "entry") {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			key.SetString("key")
			fill(t, value, depth+1)
			v.Set(reflect.MakeMap(v.Type()))
			v.SetMapIndex(key, value)
		}
	case reflect.String:
		v.SetString(rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "text"))
	case reflect.Int32, reflect.Int64:
		v.SetInt(rapid.Int64Range(0, 3).Draw(t, "number"))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case reflect.Uint8:
		v.SetUint(1)
	default:
		t.Fatalf("a field of type %s", v.Type())
	}
}
