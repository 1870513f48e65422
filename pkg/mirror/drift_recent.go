package mirror

import (
	"maps"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror/recentfields"
)

// PatchRecent means that recent fields are to be changed in place, which takes the hub Job as its
// API server sends it.
type PatchRecent struct {
	// Fields are the paths that change.
	Fields []string
	// Notes are as those of None.
	Notes []Note

	wanted recentfields.Fingerprints
}

func (PatchRecent) action() {}

// Diff names the change: equal changes of one mirror have equal diffs.
func (p PatchRecent) Diff() string {
	var text strings.Builder
	text.WriteString("recent:")
	for _, path := range p.Fields {
		text.WriteString(" " + path + "=" + p.wanted[path])
	}
	return text.String()
}

// Bytes returns a JSON patch (RFC 6902) with the mirror's UID as precondition.
func (p PatchRecent) Bytes(whole *Whole, m *batchv1.Job) []byte {
	type operation map[string]any
	rec, _ := readRecord(m)
	rec.Recent, rec.Generation = maps.Clone(rec.Recent), whole.Job.Generation
	operations := []operation{{"op": "test", "path": "/metadata/uid", "value": m.UID}}
	spec := whole.spec()
	for _, path := range p.Fields {
		pointer := "/" + strings.ReplaceAll(path, ".", "/")
		value := valueAt(spec, path)
		if value == nil {
			operations = append(operations, operation{"op": "remove", "path": pointer})
			delete(rec.Recent, path)
			continue
		}
		operations = append(operations, operation{"op": "add", "path": pointer, "value": value})
		if rec.Recent == nil {
			rec.Recent = recentfields.Fingerprints{}
		}
		rec.Recent[path] = whole.Recent[path]
	}
	record := "/metadata/annotations/" + strings.ReplaceAll(v1alpha1.AnnotationProjected, "/", "~1")
	return mustMarshal(append(operations, operation{"op": "add", "path": record, "value": rec.String()}))
}

// recreateForRecent replaces a suspended mirror whose recent fields the hub has changed. While its
// Pods stop, it stays suspended for that.
func (d *drift) recreateForRecent() Action {
	changed := d.changedRecent()
	switch {
	case len(changed) == 0:
	case suspendedWithoutPods(d.mirror):
		return Recreate{changed[0], "the hub has changed it"}
	case Suspended(d.mirror):
		d.want.Spec.Suspend = ptr.To(true)
	}
	return nil
}

// patchRecent changes recent fields of a mirror that runs, as far as they are not in a list: there,
// the element that a field is in isn't known. False: there are none.
func (d *drift) patchRecent(notes []Note) (PatchRecent, bool) {
	p := PatchRecent{Notes: notes, wanted: deref(d.target.Recent)}
	for _, path := range d.changedRecent() {
		if !strings.Contains(path, "[") {
			p.Fields = append(p.Fields, path)
		}
	}
	return p, len(p.Fields) > 0
}

// delayedRecent notes the recent fields that wait for the mirror to stop.
func (d *drift) delayedRecent() []Note {
	var notes []Note
	for _, path := range d.changedRecent() {
		if strings.Contains(path, "[") {
			notes = append(notes, Note{Field: path, Message: "changed on the hub, which takes effect when the Job has been suspended and resumed"})
		}
	}
	return notes
}

// changedRecent are the paths of the recent fields, in order, that the hub has changed since the
// mirror was written; none if that isn't known.
func (d *drift) changedRecent() []string {
	if d.target.Recent == nil || d.last.Generation == 0 {
		return nil
	}
	is, was := *d.target.Recent, d.last.Recent
	var changed []string
	for _, path := range slices.Concat(is.Paths(), was.Paths()) {
		if is[path] != was[path] {
			changed = append(changed, path)
		}
	}
	slices.Sort(changed)
	return slices.Compact(changed)
}
