package usage

import (
	"cmp"
	"time"
)

// Before is the time of a mirror's Pods that this process hasn't seen, as they were gone before, and how many
// they are.
type Before struct {
	Seconds, Succeeded, Unknown Seconds
	Count                       int64
}

// Then is what an account is compared with what is seen of its mirror later: of the Pods that got their nodes
// until Newest, and as they were At some time, both by the worker's clock.
type Then struct{ At, Newest time.Time }

// Then is when the hub last knew the mirror's Pods.
func (m *Mirror) Then() Then {
	return Then{(m.At - Moment(m.Ahead)).time(), m.Newest.time()}
}

// Before is what the account knows of the mirror, less what this process sees of it now: the times of the same
// Pods as they were when the account was written. Nothing is missing unless there are fewer Pods: clocks err, and so
// do times. Of those that ran then, and are gone now, nobody knows until when they did. An account that was written
// since all Pods were listed is another manager's: this one has lost the lead, or its predecessor is about to notice. It
// has seen all Pods of since then, or will: its watch may be behind.
func (m *Mirror) Before(then Times, o *Observation, atOnce int32, now time.Time) Before {
	if !then.Listed.IsZero() && m.At > momentOf(then.Listed) {
		return Before{Unknown: m.Unknown}
	}
	before := Before{Unknown: m.Unknown + m.unseen(then, o, atOnce, now)}
	if gone := m.Count + m.Pods - then.Count - then.Running; gone > 0 {
		before.Seconds = max(m.known()-then.until(m.Then().At), 0)
		before.Succeeded = max(m.Succeeded-seconds(then.Succeeded), 0)
		ran := Seconds(min(gone, m.Pods)) * Seconds(max(momentOf(now)-m.At, 0))
		before.Unknown, before.Count = max(before.Unknown, m.Unknown+ran), gone
	}
	return before
}

// unseen is for how long Pods may have run that came and went since the account was written: a fence deletes all. There
// were so many at once, and those that are there are known.
func (m *Mirror) unseen(then Times, o *Observation, atOnce int32, now time.Time) Seconds {
	written := cmp.Or(m.At, momentOf(o.Created.Add(o.Ahead)))
	if o.Fenced.IsZero() || momentOf(o.Fenced.Add(o.Ahead+slack)) < written {
		return 0
	}
	known := o.until(now.Add(-o.Ahead)) - then.until(m.Then().At)
	return max(Seconds(max(int64(atOnce), m.Pods))*Seconds(max(momentOf(now)-written, 0))-max(known, 0), 0)
}
