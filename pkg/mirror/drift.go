package mirror

import (
	"fmt"
	"maps"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// Action is the result of Drift: None, Patch, PatchRecent, Recreate or Refuse.
type Action interface{ action() }

// None means that there's nothing to write. Notes name the fields that the worker's admission
// changed and that stay changed.
type None struct{ Notes []Note }

// Recreate means that the mirror must be deleted, and created again with the hub Job's progress
// (see Seed), because the worker can't change Field in place. None of the mirror's Pods runs. The
// caller reflects the mirror before it deletes it.
type Recreate struct{ Field, Reason string }

// Refuse means that this worker can't run the Job. What can be changed in the mirror has been.
type Refuse struct{ Field, Message string }

// Note names a field in which the mirror differs from what the hub wants.
type Note struct{ Field, Message string }

func (None) action()     {}
func (Patch) action()    {}
func (Recreate) action() {}
func (Refuse) action()   {}

// Drift compares a mirror with what its hub Job wants now. It returns one action at a time; a
// caller that applies it and calls Drift again ends with None.
//
// A mirror that has ended or is being deleted doesn't drift. Of a light one, the fields that the
// worker's admission changed aren't noted.
func Drift(hub, mirror *batchv1.Job, target Target) Action {
	if Finished(hub) || Finished(mirror) || mirror.DeletionTimestamp != nil {
		return None{}
	}
	d := newDrift(hub, mirror, target)
	act := d.managedBy()
	if _, is := act.(Recreate); is {
		return act
	}
	d.metadata()
	d.scalars()
	if act != nil {
		return d.patchOr(act)
	}
	if act := d.template(); act != nil {
		return act
	}
	if act := d.recreateForRecent(); act != nil {
		return act
	}
	d.stamp()
	var notes []Note
	if d.last.settled(d.wanted) && !Light(mirror) {
		notes = d.foreign()
	}
	notes = append(notes, d.delayedRecent()...)
	if d.differs() {
		return newPatch(mirror, d.want, notes)
	}
	if patch, due := d.patchRecent(notes); due {
		return patch
	}
	return None{Notes: notes}
}

// patchOr changes what can change at any time in a mirror that another Job controller has: that may
// run it, and has to stop when the user says so.
func (d *drift) patchOr(act Action) Action {
	if d.stamp(); d.differs() {
		return newPatch(d.mirror, d.want, nil)
	}
	return act
}

// drift is one run of Drift. want starts as a copy of the mirror, and becomes what the mirror
// should be.
type drift struct {
	hub, mirror *batchv1.Job
	target      Target
	projected   *batchv1.Job // what the mirror would be if it were created now
	wanted      record       // of projected
	last        record       // of the last write
	want        *batchv1.Job
	newTemplate bool // want has another template than the mirror
}

func newDrift(hub, mirror *batchv1.Job, target Target) *drift {
	d := &drift{hub: hub, mirror: mirror, target: target, want: copyOnWrite(mirror)}
	d.projected, d.wanted = project(hub, target)
	var known bool
	if d.last, known = readRecord(mirror); !known {
		// Someone removed the record: begin a new one from the mirror as it is.
		d.last = d.wanted
		d.last.ManagedBy = deref(mirror.Spec.ManagedBy)
		d.last.Recent = deref(target.Recent)
	}
	return d
}

// differs compares what Drift changes. All else of want is the mirror's.
func (d *drift) differs() bool {
	is, want := d.mirror, d.want
	if d.newTemplate || !maps.Equal(is.Labels, want.Labels) || !maps.Equal(is.Annotations, want.Annotations) ||
		!slices.Equal(is.Finalizers, want.Finalizers) {
		return true
	}
	isSpec, wantSpec := is.Spec, want.Spec
	isSpec.Template, wantSpec.Template = corev1.PodTemplateSpec{}, corev1.PodTemplateSpec{}
	return !equality.Semantic.DeepEqual(&isSpec, &wantSpec)
}

// copyOnWrite copies the two maps that Drift changes in place. Drift replaces everything else.
func copyOnWrite(mirror *batchv1.Job) *batchv1.Job {
	want := *mirror
	want.Labels, want.Annotations = maps.Clone(mirror.Labels), maps.Clone(mirror.Annotations)
	return &want
}

// managedBy compares the field that names the mirror's Job controller, which can't change in place.
func (d *drift) managedBy() Action {
	is, was := deref(d.mirror.Spec.ManagedBy), d.last.ManagedBy
	switch {
	case IsFor(d.target.JobController, d.mirror):
		return nil
	case is != was:
		return Refuse{"spec.managedBy", fmt.Sprintf("the worker's admission gave the Job to %.100q", is)}
	case blank(&d.mirror.Status):
		return Recreate{"spec.managedBy", "the worker's Job controller has changed, and the Job hasn't started"}
	default:
		return nil // it continues with the controller that it has
	}
}

// IsFor reports whether a mirror is left to a worker's Job controller.
func IsFor(controller v1alpha1.JobController, mirror *batchv1.Job) bool {
	is, want := deref(mirror.Spec.ManagedBy), deref(nameOf(controller))
	return is == want || is == batchv1.JobControllerName && want == ""
}

// stamp updates the record to what the patch writes.
func (d *drift) stamp() {
	rec := d.last
	rec.Labels, rec.Annotations = d.wanted.Labels, d.wanted.Annotations
	if d.mirror.Annotations[v1alpha1.AnnotationProjected] != rec.String() {
		d.annotate(v1alpha1.AnnotationProjected, rec.String())
	}
}

func (d *drift) annotate(key, value string) {
	if d.want.Annotations == nil {
		d.want.Annotations = map[string]string{}
	}
	d.want.Annotations[key] = value
}
