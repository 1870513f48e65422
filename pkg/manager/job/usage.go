package job

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/manager/usage"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
	"github.com/jobferry/jobferry/pkg/util/objectnames"
)

// used reads the times of the Pods of all mirrors that the Job has or had: of those that it is
// placed with, those of its account, and one that it left.
func (g *gatherer) used(s *dispatch.Snapshot) []usage.Observation {
	if s.Job == nil {
		return nil
	}
	var seen []usage.Observation
	known, others, on := map[usage.ID]bool{}, mirrorsOf(s.Others), sets.New(shards.WorkersOf(s.Job)...)
	add := func(o usage.Observation) {
		if !known[o.ID()] {
			known[o.ID()] = true
			seen = append(seen, g.observation(s.Job.Namespace, o))
		}
	}
	for _, w := range s.AssignedWorkers() {
		if w.Mirror != nil {
			o := seenOf(s.Job, w.Name, w.Mirror, usage.Observation{Current: true})
			if s.Divided == nil { // a shard's mirror counts what others did
				seed := mirror.SeededNow(s.Job, w.Mirror)
				o.Seeded = int64(seed.Succeeded) + int64(seed.Failed)
				o.Told = int64(w.Mirror.Status.Succeeded) + int64(w.Mirror.Status.Failed)
			}
			add(o)
		}
	}
	for _, m := range s.Accounted {
		o := usage.Observation{Worker: m.Worker, UID: m.UID, Elsewhere: !on.Has(m.Worker),
			AtOnce: max(ptr.Deref(s.Job.Spec.Parallelism, 1), 0)}
		if other := others[m.Worker]; other != nil && other.UID == m.UID {
			o = seenOf(s.Job, m.Worker, other, o)
		}
		add(o)
	}
	left := hubstate.Get(s.Job, hubstate.MovedFrom)
	if former := others[left]; former != nil {
		add(seenOf(s.Job, left, former, usage.Observation{Former: true, Elsewhere: true}))
	}
	return seen
}

// mirrorsOf are the mirrors in some workers, by worker.
func mirrorsOf(workers []dispatch.Worker) map[string]*batchv1.Job {
	mirrors := make(map[string]*batchv1.Job, len(workers))
	for i := range workers {
		mirrors[workers[i].Name] = workers[i].Mirror
	}
	return mirrors
}

// seenOf adds to an observation what a mirror shows of itself. It may have as many Pods at once as
// it says, which is its shard's part of a divided Job, and as the Job may have: the placement may
// have no such shard any more.
func seenOf(hub *batchv1.Job, worker string, m *batchv1.Job, o usage.Observation) usage.Observation {
	o.Worker, o.UID, o.Created, o.Fenced = worker, m.UID, m.CreationTimestamp.Time, fencedAt(m)
	o.AtOnce = max(min(ptr.Deref(m.Spec.Parallelism, 1), ptr.Deref(hub.Spec.Parallelism, 1)), 0)
	o.Started = m.Status.StartTime != nil || m.Status.Active+m.Status.Succeeded+m.Status.Failed > 0
	if m.Status.Terminating != nil {
		o.Alive = ptr.To(max(int64(m.Status.Active)+int64(*m.Status.Terminating), 0))
	}
	return o
}

// observation adds what the worker's Pods show of a mirror.
func (g *gatherer) observation(namespace string, o usage.Observation) usage.Observation {
	v, ok := g.workers.view(o.Worker)
	if !ok {
		return o
	}
	view := v.View()
	o.Ahead, o.Awaited = view.ClockAhead, !v.Synced() || view.Capacity.TimesListing
	if v.Synced() && view.Capacity.TimesKnown {
		o.Times = v.PodTimes(objectnames.ID{Namespace: namespace, UID: o.UID})
		o.InTouch = o.View != 0 && !o.IsBehind()
		o.Awaited = !o.InTouch
	}
	return o
}

// fencedAt is when a mirror was last fenced, or confirmed after that; zero: it never was.
func fencedAt(m *batchv1.Job) (at time.Time) {
	for i := range m.Status.Conditions {
		if c := &m.Status.Conditions[i]; c.Type == v1alpha1.ConditionJobFenced {
			at = c.LastTransitionTime.Time
		}
	}
	if fenced, err := time.Parse(time.RFC3339, m.Annotations[v1alpha1.AnnotationFenced]); err == nil && fenced.After(at) {
		at = fenced
	}
	return at
}

// usedBefore is the time of a mirror's Pods that were gone before this process saw them.
type usedBefore struct {
	mirror usage.ID
	usage.Before
	// view of the Pods, see usage.Times.
	view int64
}

// maxUsedBefore is how many mirrors of a Job are remembered that aren't seen.
const maxUsedBefore = 8

// usedBefore returns, for the mirrors of a Job, the time of the Pods that were gone before this
// process saw the mirror: as the hub Job had it then. A mirror isn't in touch while that isn't
// known.
func (r *Reconciler) usedBefore(rec *record, t *turn) map[usage.ID]usage.Before {
	if len(t.Used.Observations) == 0 {
		return nil
	}
	var known []usedBefore
	rec.update(func(m *memory) { known = slices.Clone(m.usedBefore) })
	account, before, changed := t.Accounted, map[usage.ID]usage.Before{}, false
	places := make(map[usage.ID]int, len(known))
	for i := range known {
		places[known[i].mirror] = i
	}
	for i := range t.Used.Observations {
		o := &t.Used.Observations[i]
		at, is := places[o.ID()]
		if !is {
			at, known = len(known), append(known, usedBefore{mirror: o.ID()})
		}
		was := &known[at]
		if o.InTouch && was.view != o.View {
			*was, changed = r.compare(o, account.Of(o.ID()), t), true
			o.InTouch, o.Awaited = was.view == o.View, was.view != o.View
		}
		before[o.ID()] = was.Before
	}
	if changed {
		if len(known) > len(before)+maxUsedBefore { // a worker may make a mirror anew again and again
			known = slices.DeleteFunc(known, func(u usedBefore) bool { _, is := before[u.mirror]; return !is })
		}
		rec.update(func(m *memory) { m.usedBefore = known })
	}
	return before
}

// compare compares the account of a mirror with what is seen of it.
func (r *Reconciler) compare(o *usage.Observation, m usage.Mirror, t *turn) usedBefore {
	w, ok := r.workers.get(o.Worker)
	if !ok {
		return usedBefore{mirror: o.ID()}
	}
	then, listed := w.PodTimesAt(objectnames.ID{Namespace: t.Key.Namespace, UID: o.UID}, m.Accounted(o))
	return usedBefore{o.ID(), m.Before(then, listed, o, t.Now), then.View}
}
