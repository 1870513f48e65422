package scheduling

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"

	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
)

// Admission is what the worker's API server reads when it admits a Pod. What is nil isn't known,
// and refuses nothing.
type Admission struct {
	// PriorityClasses and RuntimeClasses by name.
	PriorityClasses map[string]*schedulingv1.PriorityClass
	RuntimeClasses  map[string]*nodev1.RuntimeClass
	// LimitRanges and Quotas of the Job's namespace.
	LimitRanges []*corev1.LimitRange
	Quotas      []*corev1.ResourceQuota
	// Counted is how many Pods of the Job itself the Quotas count: it doesn't compete with itself.
	Counted int64
	// Awaited is what other Jobs' Pods will take that aren't created yet: no Quota counts it.
	Awaited capacity.Resources
}

// admitted is a Job as the API server would make it.
type admitted struct {
	*Job
	// refused is why it admits no Pod of the Job, ever; nil if it does.
	refused *Reason
	// now is how many Pods it admits, and limit the share for which it's no more.
	now   int64
	limit int
	// shares are what quotas leave.
	shares []share
	work   *budget
}

// admit applies the API server's admission plugins, in their order.
func (s *Snapshot) admit(j *Job, b *budget) admitted {
	a := admitted{Job: j, now: math.MaxInt64, work: b}
	if s.Admission == nil || j.isBare {
		return a
	}
	if a.refused = s.Admission.priority(j.spec); a.refused == nil {
		a.Job, a.refused = j.changedBy(s.Admission, b)
	}
	if a.refused == nil {
		a.quota(s)
	}
	return a
}

// changed is what plugins make of a Job's Pods.
type changed struct {
	*Job
	refused *Reason
}

// changedBy is the Job as LimitRanger and RuntimeClass leave it, or why they refuse it.
func (j *Job) changedBy(a *Admission, b *budget) (*Job, *Reason) {
	key := a.changing(j.spec)
	if key == "" {
		return j, nil
	}
	c := j.changes.get(key, func() changed {
		b.spend(a.limitWork(j.spec), containersField)
		return j.change(a)
	})
	return c.Job, c.refused
}

const containersField = "spec.template.spec.containers"

// limitWork is that of the plugin LimitRanger: each container may get each default.
func (a *Admission) limitWork(spec *corev1.PodSpec) int {
	limits := 0
	for _, r := range a.LimitRanges {
		for i := range r.Spec.Limits {
			l := &r.Spec.Limits[i]
			limits += 1 + len(l.Default) + len(l.DefaultRequest) + len(l.Min) + len(l.Max) + len(l.MaxLimitRequestRatio)
		}
	}
	return limitWork * limits * (len(spec.InitContainers) + len(spec.Containers))
}

func (j *Job) change(a *Admission) changed {
	spec := j.spec.DeepCopy()
	for _, plugin := range []func(*Admission, *corev1.PodSpec) *Reason{(*Admission).limitRanger, (*Admission).runtimeClass} {
		if refused := plugin(a, spec); refused != nil {
			return changed{j, refused}
		}
	}
	return changed{j.with(spec), nil}
}

// changing is what may change a Pod, as one text.
func (a *Admission) changing(spec *corev1.PodSpec) string {
	var text []byte
	for _, r := range a.LimitRanges {
		text = appendObject(text, &r.Spec)
	}
	if spec.RuntimeClassName != nil && a.RuntimeClasses != nil {
		text = append(text, "class"...)
		if class := a.RuntimeClasses[*spec.RuntimeClassName]; class != nil {
			text = appendObject(text, &nodev1.RuntimeClass{Overhead: class.Overhead, Scheduling: class.Scheduling})
		}
	}
	return string(text)
}

// appendObject appends an object, with its length.
func appendObject(text []byte, object interface{ Marshal() ([]byte, error) }) []byte {
	packed, err := object.Marshal()
	if err != nil { // it never fails
		packed = []byte(err.Error())
	}
	return append(binary.AppendUvarint(text, uint64(len(packed))), packed...)
}

func (a *Admission) priority(spec *corev1.PodSpec) *Reason {
	name := spec.PriorityClassName
	if name == "" || a.PriorityClasses == nil || a.PriorityClasses[name] != nil {
		return nil
	}
	return &Reason{
		"Priority", fmt.Sprintf("no PriorityClass with name %s was found", name), "spec.template.spec.priorityClassName",
	}
}

// runtimeClass adds the class's overhead, node selector and tolerations to a Pod.
func (a *Admission) runtimeClass(spec *corev1.PodSpec) *Reason {
	const field = "spec.template.spec.runtimeClassName"
	if spec.RuntimeClassName == nil || a.RuntimeClasses == nil {
		return nil
	}
	name := *spec.RuntimeClassName
	class := a.RuntimeClasses[name]
	if class == nil {
		return &Reason{"RuntimeClass", fmt.Sprintf("RuntimeClass %q not found", name), field}
	}
	if class.Overhead != nil {
		spec.Overhead = class.Overhead.PodFixed
	}
	if class.Scheduling == nil {
		return nil
	}
	selector := maps.Clone(spec.NodeSelector)
	if selector == nil {
		selector = map[string]string{}
	}
	for key, value := range class.Scheduling.NodeSelector {
		if own, has := selector[key]; has && own != value {
			return &Reason{"RuntimeClass", "conflict: runtimeClass.scheduling.nodeSelector[" + key + "]", field}
		}
		selector[key] = value
	}
	spec.NodeSelector = selector
	spec.Tolerations = append(spec.Tolerations, class.Scheduling.Tolerations...)
	return nil
}
