package job

import (
	"maps"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/manager/group"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
)

// groups are the Jobs that belong together, as the store sees them.
type groups struct {
	kinds group.Kinds
	byID  map[group.ID]*groupOfJobs
	// concerned are the Jobs to be reconciled since another one of their group has changed, and over
	// the groups that run in no worker any more.
	concerned map[types.NamespacedName]struct{}
	over      map[group.ID]struct{}
}

// groupOfJobs are the Jobs of one group.
type groupOfJobs struct {
	id      group.ID
	members group.Members
	records map[*record]struct{}
	// asker is the one that asks for a worker for all; nil: none does. waiting are those that wait for
	// that, or for others to leave a worker.
	asker   *record
	waiting map[*record]struct{}
}

// membership is that of a Job in its group.
type membership struct {
	of *groupOfJobs
	as group.Member
}

func newGroups() groups {
	return groups{byID: map[group.ID]*groupOfJobs{}, concerned: map[types.NamespacedName]struct{}{}, over: map[group.ID]struct{}{}}
}

// joinLocked takes over the group of a hub Job, and where it is.
func (s *store) joinLocked(r *record, job *batchv1.Job) {
	id, _ := s.groups.kinds.Of(job) // one that isn't valid waits, and says so
	if r.member != nil && (r.member.of.id != id || r.id != idOf(job)) {
		s.leaveLocked(r)
	}
	if id == (group.ID{}) {
		return
	}
	next := group.Member{Since: placedAt(job), Finished: mirror.Finished(job)}
	if on := shards.WorkersOf(job); len(on) == 1 {
		next.On = strings.Clone(on[0]) // without the amounts
	}
	if was := r.member; was != nil && was.as.On == next.On {
		next.Leaves = was.as.Leaves
	} else if from := hubstate.Get(job, hubstate.MovedFrom); from != next.On {
		next.Leaves = from // until a reconcile finds that it has left
	}
	if r.member == nil {
		of := s.groups.byID[id]
		if of == nil {
			of = &groupOfJobs{id: id, records: map[*record]struct{}{}, waiting: map[*record]struct{}{}}
			s.groups.byID[id] = of
		}
		of.records[r] = struct{}{}
		r.member = &membership{of: of}
	}
	s.replaceLocked(r, next)
}

// placedAt is when a Job was placed where it is. In the same second, a move counts as later. A Job
// that was put back to where it had been, as it has ended there, draws nobody along.
func placedAt(job *batchv1.Job) time.Time {
	switch at, from := hubstate.PlacedAt(job), hubstate.Get(job, hubstate.MovedFrom); {
	case from == "":
		return at
	case from == hubstate.Get(job, hubstate.Cluster):
		return time.Time{}
	default:
		return at.Add(time.Nanosecond)
	}
}

func (s *store) leaveLocked(r *record) {
	if r.member == nil {
		return
	}
	of := r.member.of
	s.replaceLocked(r, group.Member{})
	s.stopAskingLocked(r, of, false)
	if delete(of.records, r); len(of.records) == 0 {
		delete(s.groups.byID, of.id)
	}
	r.member = nil
}

// replaceLocked takes over where a Job of a group is, and notes whom that concerns.
func (s *store) replaceLocked(r *record, next group.Member) {
	of, before := r.member.of, r.member.as
	next.On, next.Leaves = s.countedLocked(of, next.On), s.countedLocked(of, next.Leaves)
	if before == next {
		return
	}
	ran := !of.members.IsOver()
	concerns, moves := of.members.Replace(before, next)
	r.member.as = next
	if ran && of.members.IsOver() {
		s.groups.over[of.id] = struct{}{}
	}
	if concerns {
		s.concernAllLocked(of, moves)
	}
	if isPlaced := next.On != "" && before.On != next.On; next.Finished || isPlaced {
		s.stopAskingLocked(r, of, isPlaced)
	}
}

// maxForged is how many workers a group has before those don't count that aren't registered. One or
// two may have been removed; whoever may write the status of Jobs can make any number up.
const maxForged = 100

// countedLocked is a worker in which a group has a Job; empty: it doesn't count.
func (s *store) countedLocked(of *groupOfJobs, worker string) string {
	isMany := of.members.Workers() >= maxForged && !of.members.Has(worker)
	if len(worker) > validation.DNS1123SubdomainMaxLength || isMany && !s.isRegistered(worker) {
		return ""
	}
	return worker
}

// maxConcerned is how many Jobs of a group are looked at that are nowhere, when it begins or ceases
// to run in its worker. With one Job after another there, it does both for each. By that, the
// others can't go elsewhere: they wait for room in the same worker, or for the one that asks for
// all.
const maxConcerned = 32

// concernAllLocked notes that the place of a group has changed. When it moves, all look for room
// elsewhere.
func (s *store) concernAllLocked(of *groupOfJobs, moves bool) {
	nowhere := 0
	for r := range of.records {
		if !s.heedsGroupLocked(r) {
			continue
		}
		if !moves && r.member.as.On == "" && r.member.as.Leaves == "" && of.asker != r {
			if nowhere++; nowhere > maxConcerned {
				continue
			}
		}
		s.concernLocked(r)
	}
}

// heedsGroupLocked reports whether it matters to a Job where its group is: it's in a worker, or to
// go to one. Others find that out when they're to go: a suspended Job, for one.
func (s *store) heedsGroupLocked(r *record) bool {
	_, waits := s.waiting[r.key]
	_, asksNext := r.member.of.waiting[r]
	return waits || asksNext || r.member.of.asker == r || r.member.as.On != "" || r.member.as.Leaves != ""
}

func (s *store) concernLocked(r *record) {
	if !r.member.as.Finished {
		s.groups.concerned[r.key] = struct{}{}
	}
}

// stopAskingLocked has the others of the group follow this one, if it has found a worker for all;
// otherwise one of them asks next. All of them look again by themselves after a while.
func (s *store) stopAskingLocked(r *record, of *groupOfJobs, found bool) {
	delete(of.waiting, r)
	if of.asker != r {
		return
	}
	of.asker = nil
	for next := range of.waiting {
		delete(of.waiting, next)
		s.concernLocked(next)
		if !found {
			return
		}
	}
}

// concerned returns the Jobs to be reconciled since others of their group have changed, and the
// groups that run no more.
func (s *store) concerned() ([]types.NamespacedName, []group.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.groups.concerned)+len(s.groups.over) == 0 {
		return nil, nil
	}
	keys, over := slices.Collect(maps.Keys(s.groups.concerned)), slices.Collect(maps.Keys(s.groups.over))
	clear(s.groups.concerned)
	clear(s.groups.over)
	return keys, over
}

// leaves takes over the worker that the Job has yet to leave; empty: there is none. It returns the
// Job's group, and a worker other than the Job's in which others of it are, or may still run, if
// there is one. When they have left it, the Job is reconciled.
func (r *record) leaves(worker string) (id group.ID, elsewhere string) {
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	if r.member == nil {
		return group.ID{}, ""
	}
	next := r.member.as
	next.Leaves = worker
	r.store.replaceLocked(r, next)
	return r.member.of.id, r.member.of.members.Elsewhere(next)
}

// asks reports whether this Job is the one that asks for a worker for its group. If it isn't, it's
// reconciled when that one has found a worker, or when it's to ask next.
func (r *record) asks() bool {
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	if r.member == nil || r.store.records[r.key] != r {
		return true
	}
	of := r.member.of
	if of.asker == nil {
		of.asker = r
		delete(of.waiting, r)
	}
	if of.asker != r {
		of.waiting[r] = struct{}{}
	}
	return of.asker == r
}

// stopsAsking lets another Job of the group ask.
func (r *record) stopsAsking() {
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	if r.member != nil && r.member.of.asker == r {
		r.store.stopAskingLocked(r, r.member.of, false)
	}
}

// placesOf are the workers where Jobs of a group are.
func (s *store) placesOf(id group.ID) []group.Place {
	s.mu.Lock()
	defer s.mu.Unlock()
	if of := s.groups.byID[id]; of != nil {
		return of.members.Places()
	}
	return nil
}

// jobsOf are some Jobs of a group, unfinished ones only or all.
func (s *store) jobsOf(id group.ID, most int, all bool) []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.groups.byID[id]
	if of == nil {
		return nil
	}
	var some []types.NamespacedName
	for r := range of.records {
		if len(some) == most {
			break
		}
		if all || !r.member.as.Finished {
			some = append(some, r.key)
		}
	}
	return some
}

// isFinished reports whether the hub Job of a name is known to have finished.
func (s *store) isFinished(key types.NamespacedName) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.records[key]
	return r != nil && r.indexed.Value().hasEnded()
}

// passedOverBy are the workers that can't take one of some Jobs for now, with the reason.
func (s *store) passedOverBy(now time.Time, keys ...types.NamespacedName) map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]string{}
	for _, key := range keys {
		r := s.records[key]
		if r == nil {
			continue
		}
		for worker, o := range r.passedOver {
			if !now.After(o.until) {
				all[worker] = o.reason
			}
		}
	}
	return all
}
