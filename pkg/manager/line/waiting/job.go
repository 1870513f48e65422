package waiting

import (
	"cmp"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/placement"
)

// Job is a Job that waits for room, as the order sees it.
type Job struct {
	Key types.NamespacedName
	UID types.UID
	// Priority is the value of its PriorityClass. Higher goes first.
	Priority int32
	// Created is its creationTimestamp. Of equal priorities the older goes first.
	Created time.Time
	// Shape of its Pods, and Pods is how many of them it would run at once.
	Shape *placement.Shape
	Pods  int64
	// Runtime is the longest that it can run; zero: not known.
	Runtime time.Duration
	// Usual is how long Jobs of its kind run, by worker; zero: nobody can say.
	Usual map[string]Usual
	// Needs is what it lacks, by worker. Only these workers may have room for it one day.
	Needs Needs
	// Exempt: another queue decides when it starts. It heeds no reservation, and gets none.
	Exempt bool
	// Untold: it fits, and came while others were to be looked at first. So it's tried also where it
	// isn't admitted: then that is why it waits, and somebody has to say so.
	Untold bool
	// Divisible: it goes on with as many Pods as fit, and gets no reservation.
	Divisible bool
	// misjudged: when it was last tried, it was refused although it fitted by its Needs.
	misjudged bool
}

// Need is what a Job lacks in a worker. Unless that may be there now, a walk doesn't try the Job.
type Need struct {
	Lacks Lack
	// Pods is how many Pods must fit at once; zero: that isn't known, and the Job is tried whatever is
	// free.
	Pods int64
	// HelpedBy are the kinds of changes that may help; zero: any may.
	HelpedBy placement.ChangeKinds
	// Missed are the kinds of those that came while a reservation kept the Job out. They count with
	// the next change: that the reservation has gone is one.
	Missed placement.ChangeKinds
}

// Miss remembers what has changed in a worker from which a reservation keeps the Job.
func (j *Job) Miss(worker string, changed placement.Changes) {
	if need, possible := j.Needs.Get(worker); possible {
		need.Missed |= changed[worker].Of(j.Key.Namespace)
		j.Needs.Set(worker, need)
	}
}

// Missing are some changes, and those that the Job has missed.
func (j *Job) Missing(changed placement.Changes) placement.Changes {
	all := placement.Changes{}
	for worker, need := range j.Needs.All() {
		if kinds := need.Missed | changed[worker].Of(j.Key.Namespace); kinds != 0 {
			all.Add(worker, placement.Change{Kinds: kinds, Namespace: j.Key.Namespace})
		}
	}
	return all
}

// IsKnown reports whether it's known what can help. Otherwise each change may.
func (n *Need) IsKnown() bool {
	return n.Lacks == Room || n.HelpedBy != 0 && n.HelpedBy != placement.AnyChange
}

func (n *Need) isHelpedBy(kinds placement.ChangeKinds) bool {
	return n.HelpedBy == 0 || n.HelpedBy&kinds != 0
}

// Lack is a kind of what a Job lacks.
type Lack uint8

const (
	// Room: enough is free for the Pods once others have ended. Only for that there are reservations.
	Room Lack = iota
	// Nodes: the Pods wouldn't fit if nothing ran in the worker.
	Nodes
	// Other: something that isn't known here. The Job is tried at each change that may help.
	Other
)

// Compare puts the Job first that goes first. It is total for Jobs of different UIDs.
func Compare(a, b *Job) int {
	return cmp.Or(
		cmp.Compare(b.Priority, a.Priority),
		a.Created.Compare(b.Created),
		cmp.Compare(a.Key.Namespace, b.Key.Namespace),
		cmp.Compare(a.Key.Name, b.Key.Name),
		cmp.Compare(a.UID, b.UID),
	)
}

// need is how many Pods must fit at once in a worker.
func (j *Job) need(worker string) int64 {
	if need, _ := j.Needs.Get(worker); need.Pods > 0 {
		return need.Pods
	}
	return max(j.Pods, 1)
}

// Least is how many Pods must be admitted for the Job to go.
func (j *Job) Least() int64 {
	if j.Divisible {
		return 1
	}
	return j.Pods
}

// Loss is how many Pods of a Shape at most have no place any more on a node on which one Pod of
// another Shape is.
func Loss(of, by *placement.Shape) int64 {
	if of.OnePerNode() {
		return 1
	}
	of1, by1 := of.Unit(), by.Unit()
	most := max(
		times(by1.MilliCPU, of1.MilliCPU), times(by1.Memory, of1.Memory),
		times(by1.EphemeralStorage, of1.EphemeralStorage), times(by1.Pods, of1.Pods),
	)
	for name, amount := range of1.Others {
		most = max(most, times(by1.Others[name], amount))
	}
	return most
}

// times is how often a whole unit is begun in an amount.
func times(amount, unit int64) int64 {
	if unit <= 0 {
		return 0
	}
	return min((amount+unit-1)/unit, math.MaxInt32)
}
