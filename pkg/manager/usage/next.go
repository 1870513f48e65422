package usage

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// Observation is what is known of one mirror's Pods.
type Observation struct {
	Worker string
	UID    types.UID
	// Current: the Job is placed on the worker, and this is its mirror there. Former: it was moved
	// from the worker, and this is its mirror. Elsewhere: the Job isn't placed on the worker.
	Current, Former, Elsewhere bool
	// InTouch: the worker is connected, and all its Pods are known.
	InTouch bool
	// Awaited: they will be known when the worker is connected, its Pods are listed, or a watch has
	// caught up.
	Awaited bool
	// Created is when the mirror was, and Fenced when it was last fenced, both by the worker's clock;
	// zero: it wasn't, or there is no mirror.
	Created, Fenced time.Time
	// Started: the mirror says that it has or had Pods. Alive is how many of them it says are in no
	// final phase; nil: it doesn't say.
	Started bool
	Alive   *int64
	// Told is how many Pods have ended, by the mirror's own word, with those that it was seeded with.
	// Seeded are these, if the account doesn't have the mirror yet.
	Told, Seeded int64
	// AtOnce is how many Pods the mirror may have at once, without those that are being replaced.
	AtOnce int32
	Times
}

// ID of the mirror.
func (o *Observation) ID() ID { return ID{o.Worker, o.UID} }

// IsBehind reports whether the watch of Pods shows more Pods that run than the mirror has, so one
// of the two has yet to tell what the other has told: a manager that was stopped catches up.
func (o *Observation) IsBehind() bool { return o.Alive != nil && o.Running > *o.Alive }

// isOpen reports whether more will be learnt of the Pods that there are.
func (o *Observation) isOpen() bool { return o.Awaited || o.InTouch && o.Running > 0 }

// isNew reports whether the account is to have the mirror, if it doesn't yet: there are Pods, or
// may be. Of others than the Job's own the hub knows nothing.
func (o *Observation) isNew(ends bool) bool {
	return (o.Current || o.Former) && (o.Awaited || o.InTouch && (ends || o.Started || o.Running > 0 || o.Ended > 0))
}

// Times are those of a mirror's Pods. All are as this process saw them: what was gone before it
// started isn't in them.
type Times struct {
	// Ended is the time of all Pods that have ended, and Count how many they are. Succeeded is the
	// part of those that succeeded. Unknown is for how long some of them may have run besides.
	Ended, Succeeded, Unknown time.Duration
	Count                     int64
	// Running counts the Pods that have a node, and Since is the mean of when they got it, by the
	// worker's clock. Newest is when the last of all Pods got its.
	Running       int64
	Since, Newest time.Time
	// Later counts, of a time that is past, the Pods that had been created then, and say that they got
	// their nodes later.
	Later int64
	// Ahead is how far the hub's clock is ahead of the worker's.
	Ahead time.Duration
	// View is another number each time that all Pods have been listed; zero: they haven't.
	View int64
	// Listed is when they were, by the hub's clock.
	Listed time.Time
}

// until is the time of all Pods at some time of the worker's clock.
func (t *Times) until(at time.Time) Seconds {
	return seconds(t.Ended) + Seconds(t.Running)*seconds(max(at.Sub(t.Since), 0))
}

// HubJob is what the hub says of a Job.
type HubJob struct {
	*batchv1.Job
	// Requests of one Pod; nil: not known now.
	Requests corev1.ResourceList
	// Unfinished: it may still run. Afresh: its next mirror starts from zero.
	Unfinished, Afresh bool
	// Ends: the account is written with its end.
	Ends bool
	// Ended is when it ended, by a worker's clock; zero: it hasn't.
	Ended time.Time
}

// afterEnd is for how long Pods may count after their Job's end.
const afterEnd = 5 * time.Minute

// slack is what whole seconds and watches that come one after the other may differ by.
const slack = 5 * time.Second

// Next is the account after some observations. Before has what was gone before this process saw the
// mirrors.
func (a Account) Next(job HubJob, seen []Observation, before map[ID]Before, now time.Time) Account {
	next, in, at := slices.Clone(a), a.places(), a.lastMoment(job, momentOf(now))
	for i := range seen {
		o := &seen[i]
		if next.at(in, o.ID()) < 0 && o.isNew(job.Ends) && (job.Unfinished || !next.hasHeld(in[o.Worker])) {
			next = append(next, Mirror{Worker: o.Worker, UID: o.UID, Seeded: o.Seeded, At: o.createdAt(job.Job, at), Ahead: seconds(o.Ahead), Left: o.Former})
			in[o.Worker] = append(in[o.Worker], len(next)-1)
		}
		if i := next.at(in, o.ID()); i >= 0 {
			next[i].observe(job, o, before[o.ID()], next.bounds(i, in[o.Worker], job.Job, at), at)
		}
	}
	next = next.supersede(job, seen).fold()
	if ended := a.ended(); ended > 0 || job.Ends {
		for i := range next {
			next[i].Ended = cmp.Or(next[i].Ended, ended, at)
		}
	}
	return next
}

// createdAt is when the mirror was, by the hub's clock, or the hub Job, if the worker says nothing
// that can be.
func (o *Observation) createdAt(job *batchv1.Job, now Moment) Moment {
	from, at := momentOf(job.CreationTimestamp.Time), momentOf(o.Created.Add(o.Ahead))
	if o.Created.IsZero() || at < from || at > now {
		return from
	}
	return at
}

// hasHeld reports whether the Job hasn't left one of its mirrors in a worker. If it has finished,
// it gets no other there.
func (a Account) hasHeld(in []int) bool {
	return slices.ContainsFunc(in, func(i int) bool { return !a[i].Left })
}

// lastMoment is the last one that counts: a Job that has ended is as old as it was a little later.
func (a Account) lastMoment(job HubJob, now Moment) Moment {
	ended := a.ended()
	if ended == 0 && !job.Ended.IsZero() {
		ended = momentOf(job.Ended)
	}
	return lastMoment(ended, now)
}

func lastMoment(ended, now Moment) Moment {
	if ended == 0 {
		return now
	}
	return min(now, ended+Moment(afterEnd.Seconds()))
}

// ended is when the hub wrote that the Job has ended; zero: it hasn't.
func (a Account) ended() (ended Moment) {
	for i := range a {
		ended = max(ended, a[i].Ended)
	}
	return ended
}

func (m *Mirror) observe(job HubJob, o *Observation, before Before, most bounds, now Moment) {
	if job.Requests != nil && !m.Left {
		m.Requests = bounded(larger(m.Requests, job.Requests))
	}
	if !o.InTouch {
		return
	}
	m.Seconds = max(m.Seconds, min(before.Seconds+seconds(o.Ended), most.seconds))
	if !m.Left {
		m.Succeeded = max(m.Succeeded, min(before.Succeeded+seconds(o.Succeeded), m.Seconds))
	}
	m.Count = max(m.Count, before.Count+o.Count)
	m.Unknown = max(m.Unknown, min(before.Unknown+seconds(o.Unknown), most.unknown-m.Seconds))
	if !o.Newest.IsZero() {
		m.Newest = max(m.Newest, momentOf(o.Newest))
	}
	m.Pods, m.Since = min(max(o.Running, 0), pods(job.Job)), 0
	if m.Pods > 0 {
		room := max(most.seconds-m.Seconds, 0) / Seconds(m.Pods)
		created := momentOf(job.CreationTimestamp.Add(-slack))
		m.Since = min(max(momentOf(o.Since.Add(o.Ahead)), created, now-Moment(room)), now)
	}
	m.At, m.Ahead = now, seconds(o.Ahead)
}

// bounds are what the seconds of a mirror may be, and those that are known and unknown together.
type bounds struct{ seconds, unknown Seconds }

// bounds are those of a mirror at some time: as if the Job had had as many Pods in the worker since
// its creation, less those of its other mirrors there. What may have run there bounds what else may
// have, and not what is seen.
func (a Account) bounds(i int, in []int, job *batchv1.Job, now Moment) bounds {
	age := max(now-momentOf(job.CreationTimestamp.Time), 0)
	most := min(Seconds(max(pods(job), a[i].Pods))*Seconds(age+Moment(slack.Seconds())), sane)
	b := bounds{most, most}
	for _, k := range in {
		if k != i {
			b.seconds -= a[k].Settled()
			b.unknown -= a[k].Settled() + a[k].Unknown
		}
	}
	return bounds{max(b.seconds, 0), max(b.unknown, 0)}
}

// Lacks reports whether the next account settles something that this one doesn't: of the mirrors
// that the Job has left, and of all when it has ended.
func (a Account) Lacks(next Account, ended bool) bool {
	in := a.places()
	return slices.ContainsFunc(next, func(m Mirror) bool {
		was := a.of(in, m.ID())
		grown := exceeds(m.Seconds, was.Seconds) || exceeds(m.Unknown, was.Unknown)
		return (ended || m.Left) && (grown || m.Pods == 0 && was.Pods > 0)
	})
}

// exceeds reports whether seconds are more than they were by enough to be worth a write:
// Kubernetes' times are in whole seconds, and a worker may have them grow by as little as it likes.
func exceeds(is, was Seconds) bool { return is-was >= max(1, was/5000) }

// Open is when the hub last wrote what it knew of the mirrors of which more will be learnt, or that
// the Job has ended, of those that Lacks looks at; zero: there is none.
func (a Account) Open(next Account, seen []Observation, ended bool) (since time.Time) {
	was, is := a.places(), next.places()
	for i := range seen {
		m := next.of(is, seen[i].ID())
		if m.UID == "" || !ended && !m.Left || !seen[i].isOpen() {
			continue
		}
		w := a.of(was, m.ID())
		if at := max(cmp.Or(w.At, m.At), w.Ended).time(); at.After(since) {
			since = at
		}
	}
	return since
}

// Stale is when the hub first wrote what it knew of mirrors with Pods that run, as they are in
// sight; zero: there is none. What runs on since then would be unknown if the manager ended now.
func (a Account) Stale(seen []Observation) (since time.Time) {
	in := a.places()
	for i := range seen {
		m := a.of(in, seen[i].ID())
		if m.UID == "" || m.Left || m.Pods == 0 || !seen[i].InTouch {
			continue
		}
		if at := m.At.time(); since.IsZero() || at.Before(since) {
			since = at
		}
	}
	return since
}

// pods is how many Pods of the Job may run at once: as many as it wants or had, and those that are
// being replaced.
func pods(job *batchv1.Job) int64 {
	had := int64(job.Status.Active) + int64(ptr.Deref(job.Status.Terminating, 0))
	return 2 * max(int64(ptr.Deref(job.Spec.Parallelism, 1)), had, 1)
}

// supersede marks the mirrors that an unfinished Job has left: it isn't placed on the worker any
// more, or has another mirror there. It may come back to one.
func (a Account) supersede(job HubJob, seen []Observation) Account {
	if !job.Unfinished {
		return a
	}
	in := map[string][]*Observation{}
	for i := range seen {
		in[seen[i].Worker] = append(in[seen[i].Worker], &seen[i])
	}
	for i := range a {
		m := &a[i]
		superseded := slices.ContainsFunc(in[m.Worker], func(o *Observation) bool {
			return o.UID == m.UID && o.Elsewhere || o.Current && o.UID != m.UID
		})
		returned := slices.ContainsFunc(in[m.Worker], func(o *Observation) bool { return o.UID == m.UID && o.Current })
		if m.Left = m.Left && !returned; m.Left || !superseded {
			continue
		}
		m.Left = true
		if job.Afresh {
			m.Succeeded = 0
		}
	}
	return a
}

// seconds in thousandths, which is more than Pods' own times have.
func seconds(d time.Duration) Seconds { return Seconds(math.Round(d.Seconds()*1000) / 1000) }

// larger has of each resource the larger amount: a user who edits the requests of a suspended Job
// makes none of its time cheaper.
func larger(a, b corev1.ResourceList) corev1.ResourceList {
	all := maps.Clone(b)
	for name, quantity := range a {
		if other, has := all[name]; !has || other.Cmp(quantity) < 0 {
			all[name] = quantity
		}
	}
	return all
}

// bounded are the resources that count: those that Kubernetes knows, then the others by name.
func bounded(list corev1.ResourceList) corev1.ResourceList {
	names := make([]corev1.ResourceName, 0, len(list))
	for name, quantity := range list {
		if !quantity.IsZero() && name != corev1.ResourcePods {
			names = append(names, name)
		}
	}
	known := []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage}
	slices.SortFunc(names, func(a, b corev1.ResourceName) int { return rank(known, a, b) })
	kept := corev1.ResourceList{}
	for _, name := range names[:min(len(names), MaxResources)] {
		kept[name] = list[name]
	}
	return kept
}
