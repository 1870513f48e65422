package recentfields

import (
	"reflect"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
)

// TestTypesHaveTheBaseline: a Job without recent fields is read into the types of this build, so
// they must have all other fields.
func TestTypesHaveTheBaseline(t *testing.T) {
	seen := map[string]bool{}
	var check func(path, name string, of reflect.Type)
	check = func(path, name string, of reflect.Type) {
		if seen[name] {
			return
		}
		seen[name] = true
		if len(baseline[name]) == 0 {
			t.Errorf("%s: the baseline has no type %s", path, name)
		}
		has := fieldTypes(of)
		for field, is := range baseline[name] {
			child, ok := has[field]
			switch {
			case !ok:
				t.Errorf("%s.%s isn't in type %s", path, field, of)
			case is.of != "":
				check(path+"."+field, is.of, child)
			case child.Kind() == reflect.Struct && !opaque[field]:
				t.Errorf("%s.%s: what is in %s isn't looked at", path, field, child)
			}
		}
	}
	check("spec", "JobSpec", reflect.TypeFor[batchv1.JobSpec]())
	for name := range baseline {
		if !seen[name] {
			t.Errorf("type %s isn't in a Job", name)
		}
	}
}

// opaque are the fields of a template's metadata that no user sets, and those whose JSON isn't an
// object's.
var opaque = map[string]bool{
	"managedFields": true, "ownerReferences": true, "creationTimestamp": true, "deletionTimestamp": true,
	"port": true, "divisor": true, "sizeLimit": true,
}

// fieldTypes are the types of a struct's fields, or of what they have elements of, by JSON name.
func fieldTypes(of reflect.Type) map[string]reflect.Type {
	all := map[string]reflect.Type{}
	for f := range of.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" && f.Anonymous {
			for inner, child := range fieldTypes(f.Type) {
				all[inner] = child
			}
			continue
		}
		child := f.Type
		for child.Kind() == reflect.Pointer || child.Kind() == reflect.Slice {
			child = child.Elem()
		}
		all[name] = child
	}
	return all
}
