package mirror

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
)

// Patch changes a mirror in place.
type Patch struct {
	// Fields are the paths that change, for logs and events.
	Fields []string
	// Notes are as those of None.
	Notes []Note

	mirror *batchv1.Job
	diff   map[string]any
	exact  bool
}

func newPatch(mirror, want *batchv1.Job, notes []Note) Patch {
	p := Patch{Notes: notes, mirror: mirror}
	p.diff = mergeDiff(tree(mirror), tree(want))
	for _, part := range []string{"metadata", "spec"} {
		fields, _ := p.diff[part].(map[string]any)
		for field := range fields {
			p.Fields = append(p.Fields, part+"."+field)
		}
	}
	slices.Sort(p.Fields)
	// Lists are replaced as a whole, so the template must be the one that was seen.
	p.exact = slices.Contains(p.Fields, "spec.template")
	return p
}

// Bytes returns a JSON merge patch (RFC 7386) with the mirror's UID as precondition, and its
// resourceVersion if the Pod template changes.
func (p Patch) Bytes() []byte {
	return patchBytes(p.mirror, p.diff, p.exact)
}

// Diff is what changes, without preconditions: equal patches of one mirror have equal ones.
func (p Patch) Diff() string { return string(mustMarshal(p.diff)) }

// Unmet names what the patch asked for and the worker's answer doesn't have: its admission keeps
// changing it back. Asking again is of no use until the hub Job or the worker changes.
func (p Patch) Unmet(answer *batchv1.Job) []Note {
	var notes []Note
	for _, path := range unmet(p.diff, tree(answer)) {
		notes = append(notes, Note{Field: path, Message: "changed back by the worker's admission"})
	}
	return notes
}

// unmet returns the paths of a merge patch that an object doesn't satisfy.
func unmet(patch, object map[string]any) []string {
	var paths []string
	for key, want := range patch {
		got, present := object[key]
		wantMap, isMap := want.(map[string]any)
		switch {
		case want == nil:
			if present {
				paths = append(paths, key)
			}
		case isMap:
			gotMap, _ := got.(map[string]any)
			for _, below := range unmet(wantMap, gotMap) {
				paths = append(paths, key+"."+below)
			}
		default:
			var fields []string
			if notCovered(key, want, got, &fields); len(fields) > 0 {
				paths = append(paths, key)
			}
		}
	}
	slices.Sort(paths)
	return paths
}
