package scheduling

import (
	corev1 "k8s.io/api/core/v1"
)

// Total sums up one resource over the nodes on which a Job's Pods may be, full or not.
type Total struct {
	Name corev1.ResourceName
	// Requested by each Pod of the Job.
	Requested         int64
	Free, Allocatable float64
}

// Totals are those of the resources that the Job requests, and always of Pods, CPU and memory.
func Totals(s *Snapshot, j *Job) []Total {
	totals := j.noTotals()
	v := view{s, now}
	suits := j.suits(v)
	for i, n := range s.Nodes {
		if p := newPlace(v, i); suits(&p) != nil {
			continue
		}
		for t := range totals {
			total := &totals[t]
			total.Free += float64(n.Free.Get(total.Name))
			total.Allocatable += float64(n.Allocatable.Get(total.Name))
		}
	}
	return totals
}

func (j *Job) noTotals() []Total {
	var totals []Total
	for _, name := range []corev1.ResourceName{corev1.ResourcePods, corev1.ResourceCPU, corev1.ResourceMemory} {
		totals = append(totals, Total{Name: name, Requested: j.requests.Get(name)})
	}
	for i := range j.insufficient {
		r := &j.insufficient[i]
		if r.name != corev1.ResourcePods && r.name != corev1.ResourceCPU && r.name != corev1.ResourceMemory {
			totals = append(totals, Total{Name: r.name, Requested: r.amount})
		}
	}
	return totals
}
