package scheduling

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
)

// Total sums up one resource over the nodes on which a Job's Pods may be, full or not.
type Total struct {
	Name corev1.ResourceName
	// Requested by each Pod of the Job.
	Requested         int64
	Free, Allocatable float64
}

// sums over the nodes and Pods of a Snapshot, as far as anybody asked.
type sums struct {
	// lasting is what the Pods of each namespace request that don't end.
	lasting kept[string, capacity.Resources]
	// rooms by the labels that divide the nodes into domains.
	rooms kept[roomKey, []room]
}

type roomKey struct {
	labels string
	name   corev1.ResourceName
}

// room for Pods that the nodes of one domain have of one resource: now, and without any.
type room struct{ free, allocatable float64 }

// Totals are those of the resources that the Job requests, and always of Pods, CPU and memory.
func Totals(s *Snapshot, j *Job) []Total {
	totals, _ := bounded(j, func(j *Job, b *budget) []Total { return view{s, Now, b}.totals(j) })
	return totals
}

func (v view) totals(j *Job) []Total {
	totals := j.noTotals()
	alike := j.alike(v)
	asked, suits := make([]bool, alike.size), make([]bool, alike.size)
	for node, domain := range alike.at {
		if !asked[domain] {
			n := v.Nodes[node].Object
			v.work.spend(j.nodeWork.On(n), j.nodeWork.Field)
			asked[domain], suits[domain] = true, j.shape.Suits(n)
		}
	}
	for t := range totals {
		total := &totals[t]
		for domain, room := range v.rooms(j, alike, total.Name) {
			if suits[domain] {
				total.Free += room.free
				total.Allocatable += room.allocatable
			}
		}
	}
	return totals
}

// rooms of one resource in the domains of nodes that are alike for a Job.
func (s *Snapshot) rooms(j *Job, alike topology, name corev1.ResourceName) []room {
	find := func() []room {
		rooms := make([]room, alike.size)
		for i, n := range s.Nodes {
			room := &rooms[alike.at[i]]
			room.free += float64(n.Free.Get(name))
			room.allocatable += float64(n.Allocatable.Get(name))
		}
		return rooms
	}
	if j.reads.names {
		return find()
	}
	return s.sums.rooms.get(roomKey{j.reads.key, name}, find)
}

func (j *Job) noTotals() []Total {
	requests := j.shape.Unit()
	var totals []Total
	for _, name := range []corev1.ResourceName{corev1.ResourcePods, corev1.ResourceCPU, corev1.ResourceMemory} {
		totals = append(totals, Total{Name: name, Requested: requests.Get(name)})
	}
	for i := range j.insufficient {
		r := &j.insufficient[i]
		if r.name != corev1.ResourcePods && r.name != corev1.ResourceCPU && r.name != corev1.ResourceMemory {
			totals = append(totals, Total{Name: r.name, Requested: r.amount})
		}
	}
	return totals
}
