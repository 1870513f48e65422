package mirror

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
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

// newPatch returns a Refuse for what a worker has made up, and can't be encoded.
func newPatch(mirror, want *batchv1.Job, notes []Note) Action {
	p := Patch{Notes: notes, mirror: mirror}
	is, err := tree(mirror)
	next, errNext := tree(want)
	if err != nil || errNext != nil {
		return Refuse{"spec", notEncoded}
	}
	p.diff = mergeDiff(is, next)
	for _, part := range []string{"metadata", "spec"} {
		fields, _ := p.diff[part].(map[string]any)
		for field := range fields {
			p.Fields = append(p.Fields, part+"."+field)
		}
	}
	slices.Sort(p.Fields)
	// The patch replaces whole lists, so the template must be the one that Drift compared. A patch of
	// the indexes that arrives late must not give back what was asked back meanwhile.
	p.exact = slices.Contains(p.Fields, "spec.template") || slices.Contains(p.Fields, "metadata.finalizers") || p.divides()
	return p
}

// Bytes returns a JSON merge patch (RFC 7386) with the mirror's UID as precondition, and its
// resourceVersion if the Pod template, the finalizers or the indexes change.
func (p Patch) Bytes() []byte {
	return patchBytes(p.mirror, p.diff, p.exact)
}

// Starts reports whether the mirror may start Pods after the patch that it could not start before:
// it is resumed, or gets other indexes.
func (p Patch) Starts() bool {
	spec, _ := p.diff["spec"].(map[string]any)
	suspend, changes := spec["suspend"]
	return p.divides() || changes && suspend != true
}

// divides reports whether the mirror gets other indexes.
func (p Patch) divides() bool {
	meta, _ := p.diff["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	_, divides := annotations[v1alpha1.AnnotationIndexes]
	return divides
}

// Diff is the patch without preconditions: equal changes of one mirror have equal diffs.
func (p Patch) Diff() string { return string(mustMarshal(p.diff)) }

// notEncoded is what a note says of an object that no API server stores.
const notEncoded = "the worker sends a value that can't be encoded"

// Unmet names the changes of the patch that the worker's answer doesn't have, because its admission
// reverts them. A retry is of no use until the hub Job or the worker changes.
func (p Patch) Unmet(answer *batchv1.Job) []Note {
	got, err := tree(p.read(answer))
	if err != nil {
		return []Note{{Field: "spec", Message: notEncoded}}
	}
	var notes []Note
	for _, path := range unmet(p.diff, got) {
		notes = append(notes, Note{Field: path, Message: "changed back by the worker's admission"})
	}
	return notes
}

// read is what the patch may name of an answer, which the worker may make of any length: as values
// of JSON it takes several times the memory of its type.
func (p Patch) read(answer *batchv1.Job) *batchv1.Job {
	read := &batchv1.Job{Spec: answer.Spec}
	read.Labels, read.Annotations = heldKeys(answer.Labels, p.keys("labels")), heldKeys(answer.Annotations, p.keys("annotations"))
	read.Finalizers = answer.Finalizers
	cutLists(read)
	if !slices.Contains(p.Fields, "spec.template") || isLarge(&read.Spec.Template) {
		removeTemplate(read)
	}
	return read
}

// keys are those of the labels or annotations that change.
func (p Patch) keys(field string) []string {
	meta, _ := p.diff["metadata"].(map[string]any)
	changed, _ := meta[field].(map[string]any)
	return slices.Collect(maps.Keys(changed))
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
			if !covers(want, got) {
				paths = append(paths, key)
			}
		}
	}
	slices.Sort(paths)
	return paths
}

// tree returns the JSON values of an API object, or of a part of one. It fails for some that a
// worker's API server has made up.
func tree(v any) (map[string]any, error) {
	return runtime.DefaultUnstructuredConverter.ToUnstructured(v) //nolint:wrapcheck // no caller shows it
}

// treeOf is tree for what the hub's API server has validated, and for a status.
func treeOf(v any) map[string]any {
	out, err := tree(v)
	if err != nil {
		panic(fmt.Sprintf("%T must convert: %v", v, err))
	}
	return out
}

// mergeDiff returns the JSON merge patch (RFC 7386) that turns from into to.
func mergeDiff(from, to map[string]any) map[string]any {
	patch := map[string]any{}
	for key, old := range from {
		next, kept := to[key]
		switch {
		case !kept:
			patch[key] = nil
		case reflect.DeepEqual(old, next):
		default:
			oldMap, ok1 := old.(map[string]any)
			nextMap, ok2 := next.(map[string]any)
			if ok1 && ok2 {
				next = mergeDiff(oldMap, nextMap)
			}
			patch[key] = next
		}
	}
	for key, next := range to {
		if _, was := from[key]; !was {
			patch[key] = next
		}
	}
	return patch
}

// patchBytes adds the preconditions to a merge patch: the object's UID and, if exact, its
// resourceVersion.
func patchBytes(job *batchv1.Job, patch map[string]any, exact bool) []byte {
	meta := map[string]any{"uid": job.UID}
	if exact {
		meta["resourceVersion"] = job.ResourceVersion
	}
	given, _ := patch["metadata"].(map[string]any)
	maps.Copy(meta, given)
	whole := maps.Clone(patch)
	whole["metadata"] = meta
	return mustMarshal(whole)
}

// StatusPatch is the merge patch for jobs/status that sets the next status of a Job, and its
// finalizers. The API server refuses it if the Job has changed since then, because the spec decides
// which status is valid, and lists are replaced as a whole.
func StatusPatch(job *batchv1.Job, next *batchv1.JobStatus, finalizers []string) []byte {
	patch := map[string]any{"status": mergeDiff(treeOf(&job.Status), treeOf(next))}
	if !slices.Equal(finalizers, job.Finalizers) {
		patch["metadata"] = map[string]any{"finalizers": finalizers}
	}
	return patchBytes(job, patch, true)
}

// Finalizers returns those of a hub Job, with ours or without it.
func Finalizers(hub *batchv1.Job, ours bool) []string {
	return finalizers(hub, v1alpha1.FinalizerMirror, ours)
}

func finalizers(job *batchv1.Job, name string, wanted bool) []string {
	isIt := func(f string) bool { return f == name }
	switch has := slices.ContainsFunc(job.Finalizers, isIt); {
	case has && !wanted:
		return slices.DeleteFunc(slices.Clone(job.Finalizers), isIt)
	case !has && wanted:
		return append(slices.Clone(job.Finalizers), name)
	default:
		return job.Finalizers
	}
}

// AwaitsEnd reports whether a mirror is kept until the hub knows how it has ended.
func AwaitsEnd(mirror *batchv1.Job) bool {
	return slices.Contains(mirror.Finalizers, v1alpha1.FinalizerEnd)
}

// LetGoPatch is the merge patch after which a mirror isn't kept any more until the hub knows its
// end. It fails unless the mirror is as it was seen.
func LetGoPatch(mirror *batchv1.Job) []byte {
	return patchBytes(mirror, map[string]any{"metadata": map[string]any{
		"finalizers": finalizers(mirror, v1alpha1.FinalizerEnd, false),
	}}, true)
}
