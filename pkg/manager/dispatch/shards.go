package dispatch

import (
	"fmt"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
	"github.com/jobferry/jobferry/pkg/util/wake"
)

// Divided is the placement of a Job in shards.
type Divided struct {
	shards.Placement
	// Shards of the placement, with what is known of each.
	Shards []Shard
	// Err is why the placement can't be read.
	Err error
	// StatusRejected: the hub's API server rejected the status that follows from the objects as they
	// are.
	StatusRejected bool
}

// Shard is one of a Job's shards.
type Shard struct {
	shards.Shard
	// Part is the snapshot of the Job that the shard's worker is to run, as if that were a Job of its
	// own: see shards.Part.
	Part *Snapshot
}

func planUndecipherable(s *Snapshot) Plan {
	return Plan{Reports: []Report{warn(v1alpha1.EventInvalid, fmt.Sprintf(
		"%v; put the condition %s back as it was, or remove it and %s to have the Job placed anew from the progress that it shows",
		s.Divided.Err, hubstate.Placed, hubstate.State))}}
}

// planInShards brings the status of all shards to the hub, then does for each shard what is due in
// its worker, and lets the shards follow what remains and the room that there is.
func planInShards(s *Snapshot) Plan {
	plan := s.reflectShards()
	for i := range s.Divided.Shards { // before the account has the new ones
		part := s.Divided.Shards[i].Part
		plan.Reports = append(plan.Reports, s.replaced(part.Assigned, part.Part).Reports...)
	}
	if len(plan.Actions) > 0 {
		plan.Again = true
		return plan
	}
	plan.After = wake.Soonest(plan.After, s.Timing.Recheck)
	divide := Divide{Behind: plan.Behind}
	for i := range s.Divided.Shards {
		part := s.Divided.Shards[i].Part
		next := part.decideInWorker()
		plan.addPart(part, next, &divide)
	}
	if shards.Ending(s.Job) == nil && (!mirror.Suspended(s.Job) || len(divide.Drop)+len(divide.Restart) > 0) {
		plan.Actions = append(plan.Actions, divide)
	}
	plan.Again = true
	return plan
}

// addPart adds the plan of one shard. What it wants of the placement is for all shards together.
func (p *Plan) addPart(part *Snapshot, next Plan, divide *Divide) {
	own := PartPlan{Part: part, Situation: next.Situation, Reports: next.Reports}
	next.Reports = nil
	p.add(next)
	for _, action := range next.Actions {
		switch a := action.(type) {
		case Place:
			divide.add(part, Leave{Worker: a.Leave, Reason: a.Reason, Must: a.Must})
		case restart:
			divide.Restart = append(divide.Restart, a.Name)
		default:
			own.Actions = append(own.Actions, action)
		}
	}
	p.Parts = append(p.Parts, own)
}

// add adds a shard that leaves its worker: one with a mirror there is stopped first.
func (d *Divide) add(part *Snapshot, leave Leave) {
	w := part.Assigned
	if w.Synced && w.Mirror != nil && !part.isGivenUp(w) && w.Registered && w.Removal != v1alpha1.RemovalOrphan {
		d.Stop = append(d.Stop, leave)
	} else {
		d.Drop = append(d.Drop, leave)
	}
}

// reflectShards brings the hub Job's status to that of all its shards.
func (s *Snapshot) reflectShards() Plan {
	var plan Plan
	if s.Divided.StatusRejected {
		return plan
	}
	combined, placement := shards.Combine(s.Job, s.Divided.Settled, s.mirrorsOfShards(&plan), s.Now)
	switch verdict := mirror.Reflect(s.Job, combined, s.Now).(type) {
	case mirror.Next:
		next := s.planStatus(verdict, placement.Changes(s.Job), s.isStopping())
		next.Reports = append(next.Reports, plan.Reports...)
		return next
	case mirror.Deferred:
		next := s.deferred("the workers of its shards", verdict)
		plan.After, plan.Reports = next.After, append(plan.Reports, next.Reports...)
	case mirror.Violation:
		plan.Reports = append(plan.Reports, violated("The workers of its shards together", verdict))
	}
	if at := shards.Deadline(s.Job); !at.IsZero() {
		plan.After = wake.Soonest(plan.After, wake.Until(at, s.Now))
	}
	return plan
}

// mirrorsOfShards are the mirrors whose statuses are combined. One that breaks a rule is left out,
// and reported.
func (s *Snapshot) mirrorsOfShards(plan *Plan) []shards.Mirror {
	all := make([]shards.Mirror, 0, len(s.Divided.Shards))
	for i := range s.Divided.Shards {
		shard := &s.Divided.Shards[i]
		w := shard.Part.Assigned
		m := shards.Mirror{Shard: shard.Shard, Job: w.Mirror, GivenUp: !w.Synced && (!w.Registered || shard.Part.isGivenUp(w))}
		if m.Job == nil && w.TakenBack != nil {
			m.Job, m.GivenUp = w.TakenBack, true
		}
		m.Unknown = !w.Synced && !m.GivenUp && (m.Job == nil || !mirror.Finished(m.Job))
		if m.Job != nil {
			if broken, is := mirror.Check(s.Job, m.Job, s.Now); is {
				plan.Reports = append(plan.Reports, violated("Worker "+w.Name, broken))
				m.Job, m.Unknown = nil, !m.GivenUp
			}
		}
		all = append(all, m)
	}
	return all
}

// isStopping reports whether a shard, or a part of it, leaves its worker when its progress is
// shown.
func (s *Snapshot) isStopping() bool {
	for _, shard := range s.Divided.Shards {
		if shard.Stopping || shard.Returning != "" {
			return true
		}
	}
	return false
}

// reservations name the workers in which capacity is reserved for the shards.
func (d *Divided) reservations() []Reservation {
	var all []Reservation
	for _, shard := range d.Shards {
		if w := shard.Part.Assigned; w.Registered {
			all = append(all, Reservation{Worker: w.Name, Job: shard.Part.Job})
		}
	}
	return all
}
