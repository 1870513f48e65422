package line

import (
	"context"
	"maps"
	"math"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/manager/workerpanic"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/intervals"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
	"github.com/jobferry/jobferry/pkg/placement"
)

// Division is what a Job is divided by.
type Division struct {
	// Present is the placement on the hub Job, and Wanted what is left of it.
	Present, Wanted shards.Placement
	Stop            []dispatch.Leave
	Restart         []string
	// those with a mirror of the Job, and those of its shards
	Workers map[string]*dispatch.Worker
	Limit   int
	// Behind: the hub Job doesn't show yet what its mirrors have completed.
	Behind bool
	// Unconfirmed are the workers that don't confirm what they have given back by their mirrors.
	Unconfirmed []string
	// Rooms are what the Job was divided by.
	Rooms []shards.Room
}

// Divide divides a Job by the room that workers have, and reserves that for it before the next Job
// is looked at. False: it isn't its turn to be judged.
func (l *Line) Divide(ctx context.Context, of Reserver, d *Division, q Question) (placement.Decision, shards.Placement, bool) {
	w, job := l.newEntry(q), q.Job
	shape := w.exact
	w.Divisible = true
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.decidedLocked(w)
	one := *job
	one.Spec.Parallelism = ptr.To(min(ptr.Deref(job.Spec.Parallelism, 1), 1))
	w.request.Job, w.asked = &one, l.freed.count()
	admits := l.admits(w)
	candidates := l.candidatesLocked(ctx, w, admits)
	followers, admitted := map[string]bool{}, map[string]int64{}
	for i := range candidates {
		c := &candidates[i]
		followers[c.Name], admitted[c.Name] = shards.Follows(job, c.JobController), min(admits(c.Name), math.MaxInt32)
	}
	decision, rooms := placement.Decision{TooMuch: true}, map[string]int64{}
	if !w.heavy {
		decision, rooms = w.roomsIn(candidates, job, admitted, true)
	}
	if decision.TooMuch {
		w.heavy = true
		l.awaitLocked(w, candidates)
		if !l.hasTurnLocked(&w.Job) {
			return placement.Decision{}, d.Present, false
		}
		taken, left := maps.Clone(l.taken), maxNeedWork
		var quotas func(worker string) int64
		l.unlocked(func() {
			decision, rooms = w.roomsIn(candidates, job, admitted, false)
			quotas = l.quotasFor(w)
		})
		for worker, found := range rooms {
			rooms[worker] = min(found, admits(worker))
			if taken[worker] != l.taken[worker] {
				rooms[worker] = min(quotas(worker), l.roomFor(worker, w, rooms[worker], &left))
			}
			if l.isClosed(w, worker) {
				rooms[worker] = 0
			}
			if rooms[worker] < found {
				l.freed.add(moreRoom, worker) // it's looked at again
			}
		}
	}
	l.joinLocked(w, decision)
	d.gatherRooms(decision, followers, func(worker string) int64 { return rooms[worker] })
	d.stopShards()
	next := shards.Divide(job, d.Wanted, d.Rooms, d.Limit)
	var reservations []dispatch.Reservation
	for _, shard := range next.Shards {
		reservations = append(reservations, dispatch.Reservation{Worker: shard.Worker, Job: shards.Part(job, shard, followers[shard.Worker])})
		if _, was := d.Present.In(shard.Worker); !was {
			l.order.Take(&w.Job, shard.Worker, int64(shard.Parallelism), l.clock.Now())
		}
	}
	if len(next.Shards) > 0 {
		l.reserveLocked(of, reservations, shape, false)
	}
	return decision, next, true
}

// Returned are the indexes that a shard's worker has given back, by its mirror, and that may leave
// the shard.
func (d *Division) Returned(job *batchv1.Job, shard shards.Shard) intervals.Set {
	if !d.showsHeld(shard.Worker) {
		return nil
	}
	return shard.Returned(job, d.Workers[shard.Worker].Mirror)
}

// showsHeld reports whether a worker's mirror says what its shard holds.
func (d *Division) showsHeld(worker string) bool {
	w := d.Workers[worker]
	return w != nil && w.Mirror != nil && w.Synced && !d.Behind && !slices.Contains(d.Unconfirmed, worker)
}

// roomsIn is where one Pod of a Job fits, and how many of those that are admitted do.
func (w *entry) roomsIn(
	candidates []placement.Cluster, job *batchv1.Job, admitted map[string]int64, lightly bool,
) (placement.Decision, map[string]int64) {
	request := w.request
	request.Lightly = lightly
	capacity := make(map[string]*placement.Snapshot, len(candidates))
	for i := range candidates {
		capacity[candidates[i].Name] = candidates[i].Capacity
	}
	decision, all, rooms := place(request, candidates), placement.NewJob(job), map[string]int64{}
	if all.Expired = untilTimeout(); lightly {
		all.Lightly()
	}
	for _, c := range decision.Candidates {
		free := capacity[c.Cluster]
		if free == nil || free.NodesUnknown {
			rooms[c.Cluster] = min(parallelismOf(job), admitted[c.Cluster])
			continue
		}
		answer := all.Judge(free, admitted[c.Cluster])
		if answer.Panic != "" {
			workerpanic.Report(c.Cluster, answer.Panic)
		}
		rooms[c.Cluster] = answer.Now
	}
	decision.TooMuch = decision.TooMuch || all.TooMuch()
	return decision, rooms
}

// gatherRooms sets the rooms: those of the workers that can take Pods of the Job, best first, then
// those of workers that may do so later, and of the others with shards.
func (d *Division) gatherRooms(decision placement.Decision, followers map[string]bool, room func(string) int64) {
	open := map[string]bool{}
	for _, c := range decision.Candidates {
		open[c.Cluster] = true
		d.Rooms = append(d.Rooms, d.room(c.Cluster, followers[c.Cluster], true, room(c.Cluster)))
	}
	for _, r := range decision.Rejections {
		if _, has := d.Wanted.In(r.Cluster); !has && r.Reason.Passing() {
			open[r.Cluster] = true
			d.Rooms = append(d.Rooms, d.room(r.Cluster, followers[r.Cluster], r.Reason == placement.Insufficient, 0))
		}
	}
	for _, shard := range d.Wanted.Shards {
		if !open[shard.Worker] {
			d.Rooms = append(d.Rooms, d.room(shard.Worker, followers[shard.Worker], false, int64(shard.Parallelism)))
		}
	}
}

func (d *Division) room(name string, follows, open bool, pods int64) shards.Room {
	room := shards.Room{Worker: name, Pods: pods, Open: open, Elastic: follows, Idle: true}
	w := d.Workers[name]
	if w == nil || w.Mirror == nil {
		room.Idle = w == nil || w.Synced
		return room
	}
	m := w.Mirror
	room.Elastic = shards.IsFollowing(m)
	room.Idle = w.Synced && mirror.Finished(m)
	shard, is := d.Wanted.In(name)
	if room.Elastic && is && d.showsHeld(name) {
		room.Held, room.Known = shard.Held(m)
	}
	return room
}

// stopShards marks the shards that are to leave their workers, as far as another worker can take
// Pods of the Job: without one a shard continues where it is. Those that are to be restarted are
// marked in any case.
func (d *Division) stopShards() {
	leaves := func(worker string) bool {
		return slices.ContainsFunc(d.Stop, func(l dispatch.Leave) bool { return l.Worker == worker })
	}
	elsewhere := slices.ContainsFunc(d.Rooms, func(r shards.Room) bool { return r.Open && r.Pods > 0 && !leaves(r.Worker) })
	d.Wanted.Shards = slices.Clone(d.Wanted.Shards)
	for i := range d.Wanted.Shards {
		s := &d.Wanted.Shards[i]
		s.Stopping = s.Stopping || elsewhere && leaves(s.Worker) || slices.Contains(d.Restart, s.Worker)
	}
}
