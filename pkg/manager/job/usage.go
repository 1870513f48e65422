package job

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/shards"
	"github.com/jobferry/jobferry/pkg/usage"
)

// used reads the times of the Pods of all mirrors that the Job has or had: of those that it is placed with,
// those of its account, and one that it left.
func (g *gatherer) used(s *dispatch.Snapshot) []usage.Observation {
	if s.Job == nil {
		return nil
	}
	var seen []usage.Observation
	known := map[types.UID]bool{}
	add := func(o usage.Observation) {
		if !known[o.UID] {
			known[o.UID] = true
			seen = append(seen, g.observation(o))
		}
	}
	for _, w := range s.AssignedWorkers() {
		if w.Mirror != nil {
			add(usage.Observation{Worker: w.Name, UID: w.Mirror.UID, Current: true})
		}
	}
	for _, m := range usage.Read(s.Job) {
		add(usage.Observation{Worker: m.Worker, UID: m.UID, Elsewhere: !shards.IsOn(s.Job, m.Worker)})
	}
	for i := range s.Others {
		if w := &s.Others[i]; w.Mirror != nil && w.Name == s.Job.Annotations[v1alpha1.AnnotationMovedFrom] {
			add(usage.Observation{Worker: w.Name, UID: w.Mirror.UID, Former: true, Elsewhere: true})
		}
	}
	return seen
}

func (g *gatherer) observation(o usage.Observation) usage.Observation {
	v, ok := g.workers.view(o.Worker)
	if !ok {
		return o
	}
	state := v.View().Capacity
	o.Awaited = !v.Synced() || state.TimesListing
	if v.Synced() && state.TimesKnown {
		o.Times = v.PodTimes(o.UID)
		o.InTouch, o.Awaited = o.View != 0, o.View == 0
	}
	return o
}

// unseenFor is for how long a view may not show Pods yet that the last one did. Then they are gone.
const unseenFor = time.Minute

// usedBefore is the time of a mirror's Pods that were gone before this process saw them.
type usedBefore struct {
	usage.Before
	// view of the Pods, see usage.Times, and since when the mirror is looked at in it.
	view  int64
	since time.Time
	// settled: it doesn't change any more.
	settled bool
}

// usedBefore returns, for the mirrors of a Job, the time of the Pods that were gone before this process
// saw the mirror: as the hub Job had it then. While Pods of the account may still be shown, the mirror isn't
// in touch: to count them as gone, and then again, would be too much.
func (r *Reconciler) usedBefore(rec *record, t *turn) map[types.UID]usage.Before {
	if len(t.Used.Observations) == 0 {
		return nil
	}
	var known map[types.UID]usedBefore
	rec.update(func(m *memory) { known = maps.Clone(m.usedBefore) })
	account, before, news := usage.Read(t.Job), map[types.UID]usage.Before{}, map[types.UID]usedBefore{}
	for i := range t.Used.Observations {
		o := &t.Used.Observations[i]
		was := known[o.UID]
		if o.InTouch && (!was.settled || was.view != o.View) {
			was = r.compare(o, account.Of(o.UID), was, t.Now)
			news[o.UID] = was
			o.InTouch, o.Awaited = was.settled, !was.settled
		}
		before[o.UID] = was.Before
	}
	if len(news) > 0 {
		rec.update(func(m *memory) {
			if m.usedBefore == nil {
				m.usedBefore = map[types.UID]usedBefore{}
			}
			maps.Copy(m.usedBefore, news)
		})
	}
	return before
}

// compare compares the account of a mirror with what is seen of it in a view.
func (r *Reconciler) compare(o *usage.Observation, m usage.Mirror, was usedBefore, now time.Time) usedBefore {
	if was.view != o.View {
		was = usedBefore{view: o.View, since: now}
	}
	if w, ok := r.workers.get(o.Worker); ok {
		then := w.PodTimesThen(o.UID, m.Then())
		was.Before = m.Before(then)
		was.settled = then.View == o.View && (was.Count == 0 || now.Sub(was.since) >= unseenFor)
	}
	return was
}
