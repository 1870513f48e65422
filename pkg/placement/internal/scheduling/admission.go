package scheduling

import (
	"fmt"
	"hash/maphash"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"

	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
	"github.com/jobferry/jobferry/pkg/util/digest"
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

// Admitted is how many Pods of the Job the API server of a worker admits now.
func (j *Job) Admitted(s *Snapshot) int64 {
	pods, _ := bounded(j, func(j *Job, b *budget) int64 {
		a := s.admit(j, b)
		if a.refused != nil {
			return 0
		}
		return a.now
	})
	return pods
}

// changed is what plugins make of a Job's Pods.
type changed struct {
	*Job
	refused *Reason
}

// changedBy is the Job as LimitRanger and RuntimeClass leave it, or why they refuse it.
func (j *Job) changedBy(a *Admission, b *budget) (*Job, *Reason) {
	limits := a.limits(b)
	by, changes := a.changing(j.spec, b)
	if !changes {
		return j, nil
	}
	c := j.changes.get(by, func() changed {
		b.spend(limitWork*limits*(len(j.spec.InitContainers)+len(j.spec.Containers))+j.reading, containersField)
		return j.change(a)
	})
	return c.Job, c.refused
}

const containersField = "spec.template.spec.containers"

// limits are how many amounts LimitRanges have. Each container may get, or is compared with, each.
func (a *Admission) limits(b *budget) (limits int) {
	for _, r := range a.LimitRanges {
		for i := range r.Spec.Limits {
			l := &r.Spec.Limits[i]
			amounts := 1 + len(l.Default) + len(l.DefaultRequest) + len(l.Min) + len(l.Max) + len(l.MaxLimitRequestRatio)
			b.spend(limitWork*amounts, containersField)
			limits += amounts
		}
	}
	return limits
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

// changing stands for what may change a Pod, if anything may. The work for LimitRanges is spent.
// They may have tens of megabytes together, of which one at a time is packed.
func (a *Admission) changing(spec *corev1.PodSpec, b *budget) (by digest.Digest, changes bool) {
	var all maphash.Hash
	var packed []byte
	all.SetSeed(seed)
	add := func(object packable) {
		size := object.Size()
		b.spend(size/keyBytes, containersField)
		packed = slices.Grow(packed[:0], size)[:size]
		_, _ = object.MarshalToSizedBuffer(packed) // it never fails
		maphash.WriteComparable(&all, size)
		_, _ = all.Write(packed)
		changes = true
	}
	for _, r := range a.LimitRanges {
		add(&r.Spec)
	}
	if spec.RuntimeClassName != nil && a.RuntimeClasses != nil {
		_, _ = all.WriteString("class")
		changes = true
		if class := a.RuntimeClasses[*spec.RuntimeClassName]; class != nil {
			b.spend(classWork(class), runtimeClassField)
			add(&nodev1.RuntimeClass{Overhead: class.Overhead, Scheduling: class.Scheduling})
		}
	}
	return digest.Of(all.Sum64()), changes
}

// packable is a part of an API object.
type packable interface {
	Size() int
	MarshalToSizedBuffer(into []byte) (int, error)
}

// classWork is that to read a RuntimeClass.
func classWork(class *nodev1.RuntimeClass) (work int) {
	if class.Overhead != nil {
		work += limitWork * len(class.Overhead.PodFixed)
	}
	if class.Scheduling != nil {
		work += capacity.TermWeight * (len(class.Scheduling.NodeSelector) + len(class.Scheduling.Tolerations))
	}
	return work
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

const runtimeClassField = "spec.template.spec.runtimeClassName"

// runtimeClass adds the class's overhead, node selector and tolerations to a Pod.
func (a *Admission) runtimeClass(spec *corev1.PodSpec) *Reason {
	if spec.RuntimeClassName == nil || a.RuntimeClasses == nil {
		return nil
	}
	name := *spec.RuntimeClassName
	class := a.RuntimeClasses[name]
	if class == nil {
		return &Reason{"RuntimeClass", fmt.Sprintf("RuntimeClass %q not found", name), runtimeClassField}
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
			return &Reason{"RuntimeClass", "conflict: runtimeClass.scheduling.nodeSelector[" + key + "]", runtimeClassField}
		}
		selector[key] = value
	}
	spec.NodeSelector = selector
	spec.Tolerations = append(spec.Tolerations, class.Scheduling.Tolerations...)
	return nil
}
