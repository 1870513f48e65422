package mirror

import (
	"fmt"
	"maps"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
)

// mutableTemplateMinor is the Kubernetes version, 1.x, since which the resources of a suspended Job
// can change, and its scheduling directives also after it has started (KEP-5440,
// MutableSchedulingDirectivesForSuspendedJobs).
const mutableTemplateMinor = 36

// template applies changes of the scheduling directives and resources. It suspends the mirror
// first; a worker that is too old to change them in place gets a new mirror. It returns nil if want
// can be patched.
func (d *drift) template() Action {
	if d.last.settled(d.wanted) {
		return nil
	}
	if Light(d.mirror) || isLarge(&d.projected.Spec.Template) {
		return d.replaceStopped("it's too large to be changed in place")
	}
	if len(d.last.Recent) > 0 {
		return d.replaceStopped("a patch replaces lists, in which it has fields that not all releases of Kubernetes have")
	}
	next := d.templateWanted()
	if equality.Semantic.DeepEqual(next, &d.mirror.Spec.Template) {
		d.last.Scheduling, d.last.Resources = d.wanted.Scheduling, d.wanted.Resources
		return nil
	}
	field, allowed := d.templateAllowed(next)
	switch {
	case allowed:
		d.want.Spec.Template, d.newTemplate = *next, true
		d.last.Scheduling, d.last.Resources = d.wanted.Scheduling, d.wanted.Resources
	case !suspendedWithoutPods(d.mirror):
		d.want.Spec.Suspend = ptr.To(true)
	default:
		return Recreate{field, fmt.Sprintf("a worker before Kubernetes 1.%d can't change it in place", mutableTemplateMinor)}
	}
	return nil
}

// replaceStopped applies changes to a mirror whose template can't be patched: it's suspended, then
// it's made anew.
func (d *drift) replaceStopped(why string) Action {
	if suspendedWithoutPods(d.mirror) {
		return Recreate{"spec.template", why}
	}
	d.want.Spec.Suspend = ptr.To(true)
	return nil
}

// templateWanted is the mirror's template with the hub's changes.
func (d *drift) templateWanted() *corev1.PodTemplateSpec {
	next := d.mirror.Spec.Template.DeepCopy()
	from := &d.projected.Spec.Template
	if d.last.Scheduling != d.wanted.Scheduling {
		setScheduling(next, schedulingOf(from), !manualSelector(d.hub))
	}
	if d.last.Resources != d.wanted.Resources {
		setResources(next, resourcesOf(from))
	}
	return next
}

func setScheduling(t *corev1.PodTemplateSpec, s scheduling, keepGenerated bool) {
	labels := maps.Clone(s.Labels)
	for _, key := range generatedLabels {
		if v, ok := t.Labels[key]; ok && keepGenerated {
			labels[key] = v
		}
	}
	t.Labels, t.Annotations = labels, s.Annotations
	t.Spec.NodeSelector, t.Spec.Tolerations, t.Spec.SchedulingGates = s.NodeSelector, s.Tolerations, s.SchedulingGates
	if t.Spec.Affinity == nil {
		t.Spec.Affinity = &corev1.Affinity{}
	}
	t.Spec.Affinity.NodeAffinity = s.NodeAffinity
	if *t.Spec.Affinity == (corev1.Affinity{}) {
		t.Spec.Affinity = nil
	}
}

func setResources(t *corev1.PodTemplateSpec, want map[string]corev1.ResourceRequirements) {
	for _, list := range [][]corev1.Container{t.Spec.InitContainers, t.Spec.Containers} {
		for i := range list {
			if r, ok := want[list[i].Name]; ok {
				list[i].Resources = r
			}
		}
	}
}

// templateAllowed reports whether the worker's API server accepts this template now, and names what
// differs. Its validation looks at the mirror before the patch, so the patch may resume the mirror
// at the same time.
func (d *drift) templateAllowed(next *corev1.PodTemplateSpec) (field string, allowed bool) {
	neverStarted := Suspended(d.mirror) && d.mirror.Status.StartTime == nil
	modern := d.target.Minor >= mutableTemplateMinor && suspendedWithoutPods(d.mirror)
	if !equality.Semantic.DeepEqual(resourcesOf(next), resourcesOf(&d.mirror.Spec.Template)) {
		return "spec.template.spec.containers[*].resources", modern
	}
	return "spec.template (scheduling directives)", modern || (neverStarted && d.mirror.Status.Active == 0)
}

// suspendedWithoutPods reports whether a mirror is suspended and has no Pods, or only terminating
// ones.
func suspendedWithoutPods(mirror *batchv1.Job) bool {
	return Suspended(mirror) && mirror.Status.Active == 0 &&
		(mirror.Status.StartTime == nil || isTrue(&mirror.Status, batchv1.JobSuspended))
}
