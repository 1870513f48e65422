package usage

import (
	"math"
	"time"
)

// Before is the time of a mirror's Pods that this process hasn't seen, as they were gone before,
// and how many they are.
type Before struct {
	Seconds, Succeeded, Unknown Seconds
	Count                       int64
}

// Accounted says which of a mirror's Pods an account covers: those that got their nodes until
// Newest, as they were At the time of the account. Both are by the worker's clock. At most so many
// of them were Running.
type Accounted struct {
	At, Newest time.Time
	Running    int64
}

// Accounted returns which of the mirror's Pods the account covers. If the worker's clock was set
// since, the Pods' own times don't tell how many ran then. The account does. So it does when the
// Job has ended: a clock that was set before may have Pods say that they ended later.
func (m *Mirror) Accounted(o *Observation) Accounted {
	then := Accounted{At: m.at(), Newest: m.Newest.time(), Running: math.MaxInt64}
	if m.isClockSet(o) || m.Ended > 0 {
		then.Running = m.Pods
	}
	return then
}

// isClockSet reports whether the worker's clock was set since the account.
func (m *Mirror) isClockSet(o *Observation) bool {
	return math.Abs(float64(seconds(o.Ahead)-m.Ahead)) > slack.Seconds()
}

// at is when that was, by the worker's clock.
func (m *Mirror) at() time.Time { return (m.At - Moment(m.Ahead)).time() }

// Before returns what the account knows of the mirror, less what this process sees of it now. The
// argument then has the times of the same Pods at the moment of the account, and the argument
// listed has those of all Pods at the moment of the last list. Nothing is missing unless there are
// fewer Pods than in the account, because clocks and times err. Of a Pod that ran at the moment of
// the account and is gone now, nobody knows when it ended: before the list.
//
// An account that was written since all Pods were listed has what this process has seen: another
// manager wrote it, or this one, which forgets what it compared when the Job has ended. So has an
// account of the last moment that counts. The unknown time of Pods that this process saw vanish is
// in it, and isn't added again. Nothing counts as gone while this process hasn't seen the newest
// Pod of the account: its watch is behind.
//
// A scheduler whose API server lost a write gives a Pod its node again. Such a Pod may be one that
// ran when the account was written. So may one be that waited for a node then. It's unknown which.
func (m *Mirror) Before(then, listed Times, o *Observation, now time.Time) Before {
	last, unknown := m.lastMoment(momentOf(now)), m.Unknown
	isSince := !then.Listed.IsZero() && m.At > momentOf(then.Listed)
	if isSince || m.At >= last {
		unknown = max(m.Unknown-seconds(o.Unknown), 0)
	}
	if isSince && momentOf(o.Newest) < m.Newest {
		return Before{Unknown: unknown}
	}
	if !then.Listed.IsZero() {
		last = min(last, momentOf(then.Listed))
	}
	before := Before{Unknown: unknown}
	if !isSince {
		before.Unknown += m.unseen(then, listed, o, last)
	}
	if gone := m.Count + m.Pods - then.Count - then.Running; gone > 0 {
		missing := max(m.known()-then.until(m.at()), 0)
		again := min(then.Later, gone, m.Pods)
		doubtful := min(missing, Seconds(again)*Seconds(max(m.At-m.Since, 0)))
		before.Seconds, before.Count = missing-doubtful, gone-again
		before.Succeeded = max(m.Succeeded-seconds(then.Succeeded), 0)
		ran := Seconds(min(gone, max(m.Pods-then.Running, 0))) * Seconds(max(last-m.At, 0))
		before.Unknown = max(before.Unknown, unknown+ran+doubtful)
	}
	if !isSince {
		if m.isUnseen(o) {
			before.Unknown += Seconds(o.AtOnce) * Seconds(max(last-m.At, 0))
		}
		came := m.unlisted(then, o)
		before.Count += came
		before.Unknown += Seconds(came) * Seconds(max(last-m.since(o), 0))
	}
	return before
}

// isUnseen reports whether the hub never saw a Pod of the mirror, nor sees the mirror now: it may
// have had Pods.
func (m *Mirror) isUnseen(o *Observation) bool {
	return m.UID != "" && m.Pods+m.Count == 0 && m.Seconds+m.Unknown == 0 && o.Created.IsZero() && o.Running+o.Count == 0
}

// unlisted is how many Pods came and went between the account and the list of all Pods, by the
// mirror's own word: its Job controller deletes those that run at the Job's deadline, and a janitor
// any.
func (m *Mirror) unlisted(then Times, o *Observation) int64 {
	known, seeded := m.Count+m.Pods+o.Count+o.Running-then.Count-then.Running, m.Seeded
	if m.UID == "" {
		seeded = o.Seeded
	}
	return max(o.Told-seeded-known, 0)
}

// since is the account's moment, or the mirror's creation if that's later.
func (m *Mirror) since(o *Observation) Moment { return max(m.At, momentOf(o.Created.Add(o.Ahead))) }

// unseen is for how long Pods may have run that came and went between the account, or the mirror's
// creation, and the list of all Pods: a fence deletes all. There were so many at once, and those
// that are there are known.
func (m *Mirror) unseen(then, listed Times, o *Observation, until Moment) Seconds {
	since := m.since(o)
	if o.Fenced.IsZero() || !m.isClockSet(o) && momentOf(o.Fenced.Add(o.Ahead+slack)) < since {
		return 0
	}
	known := listed.until((until - Moment(seconds(o.Ahead))).time()) - then.until(m.at())
	return max(Seconds(max(int64(o.AtOnce), m.Pods))*Seconds(max(until-since, 0))-max(known, 0), 0)
}

// lastMoment is the last one until now that counts in the account.
func (m *Mirror) lastMoment(now Moment) Moment { return lastMoment(m.Ended, now) }
