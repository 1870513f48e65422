package usage

import (
	"cmp"
	"math"
	"testing"
	"time"
)

// The next manager sees those Pods only that are still there. What the account says of others isn't
// lost: two ran for 20 s and 30 s when it was written, and two had ended. Until when those ran that
// are gone isn't known.
func TestTheManagerRestarts(t *testing.T) {
	s := newStory(t, 10)
	s.pass(time.Minute)
	const ahead = time.Hour
	then := s.now.Add(-ahead)
	written := ended(50, 20)
	written.Count, written.Running, written.Since, written.Ahead = 2, 2, then.Add(-25*time.Second), ahead
	written.Newest = then.Add(-time.Hour)
	s.see(current("west", "m", written))
	s.pass(time.Minute)
	for name, row := range map[string]struct {
		then, now     Times
		want, unknown float64
	}{
		"all are there":         {Times{Count: 2, Ended: 50 * time.Second, Running: 2, Since: then.Add(-25 * time.Second)}, ended(110, 80), 110, 0},
		"those that ended went": {Times{Running: 2, Since: then.Add(-25 * time.Second)}, ended(60, 60), 110, 0},
		"one that ran went":     {Times{Count: 2, Ended: 50 * time.Second, Running: 1, Since: then.Add(-20 * time.Second)}, ended(75, 20), 105, 60},
		"one that ran went, or has another node": {
			Times{Count: 2, Ended: 50 * time.Second, Running: 1, Since: then.Add(-20 * time.Second), Later: 1}, ended(75, 20), 80, 85,
		},
		"more had no node":       {Times{Count: 2, Ended: 50 * time.Second, Running: 2, Since: then.Add(-25 * time.Second), Later: 5}, ended(110, 80), 110, 0},
		"all ended before":       {Times{Count: 4, Ended: 90 * time.Second}, ended(90, 80), 90, 0},
		"the clock was set":      {Times{Running: 4, Since: then}, ended(110, 80), 110, 0},
		"all went":               {Times{}, Times{}, 100, 120},
		"all went, one has come": {Times{}, ended(7, 0), 107, 120},
		"another manager wrote":  {Times{Listed: s.now.Add(-90 * time.Second)}, ended(110, 80), 110, 0},
	} {
		t.Run(name, func(t *testing.T) {
			again := *s
			again.t = t
			m := s.account.Of(ID{"west", "m"})
			for now, ran := range map[time.Duration]int64{ahead: math.MaxInt64, ahead - 6*time.Second: 2, ahead + 6*time.Second: 2} {
				if got := m.Accounted(&Observation{Times: Times{Ahead: now}}); got != (Accounted{then, written.Newest, ran}) {
					t.Errorf("with a clock that is %s ahead, the account is of %v", now, got)
				}
			}
			again.before = map[ID]Before{{"west", "m"}: m.Before(row.then, row.then, &Observation{}, again.now)}
			again.see(current("west", "m", row.now))
			again.expect("west", "pods", row.want, 0)
			again.expectUnknown(row.unknown)
		})
	}
}

// Pods may have come and gone while nobody saw the worker, if it fenced the mirror meanwhile.
func TestPodsThatNobodySaw(t *testing.T) {
	s := newStory(t, 2)
	s.pass(time.Minute)
	const ahead = time.Hour
	s.see(current("west", "m", Times{Running: 1, Since: s.now.Add(-ahead - 10*time.Second), Ahead: ahead, Newest: s.now.Add(-ahead)}))
	written := s.now
	s.pass(time.Minute)
	there := s.now.Add(-ahead)
	known := Times{Running: 1, Since: there.Add(-70 * time.Second), Ahead: ahead}
	for name, row := range map[string]struct {
		fenced  time.Time
		account Mirror
		seen    Times
		atOnce  int32
		listed  time.Duration
		want    Seconds
	}{
		"it wasn't fenced":              {account: s.account.Of(ID{"west", "m"}), seen: known},
		"it was fenced before":          {account: s.account.Of(ID{"west", "m"}), seen: known, fenced: written.Add(-ahead - time.Minute)},
		"it was fenced":                 {account: s.account.Of(ID{"west", "m"}), seen: known, fenced: there, want: 60},
		"the clock was set since":       {account: s.account.Of(ID{"west", "m"}), seen: Times{Ahead: -time.Hour}, fenced: written.Add(-ahead), want: 120},
		"it has no account":             {seen: Times{Ahead: ahead}, fenced: there, want: 60},
		"it has part of the Job's Pods": {seen: Times{Ahead: ahead}, atOnce: 1, fenced: there, want: 30},
		"it was created since":          {account: Mirror{At: momentOf(created)}, seen: Times{Ahead: ahead}, fenced: there, want: 60},
		"all were listed before":        {account: s.account.Of(ID{"west", "m"}), seen: known, fenced: there, listed: 20 * time.Second, want: 20},
		"all that it may have is seen":  {account: s.account.Of(ID{"west", "m"}), seen: Times{Running: 2, Since: known.Since, Ahead: ahead}, fenced: there},
	} {
		o := Observation{Created: created.Add(-ahead), Fenced: row.fenced, AtOnce: cmp.Or(row.atOnce, 2), Times: row.seen}
		then := Times{Running: min(row.seen.Running, 1), Since: known.Since}
		if row.account.UID == "" {
			o.Created = there.Add(-30 * time.Second)
		}
		if row.listed != 0 {
			then.Listed = written.Add(row.listed)
		}
		if got := row.account.Before(then, row.seen, &o, s.now).Unknown; got != row.want {
			t.Errorf("%s: %v s are unknown, want %v", name, got, row.want)
		}
	}
}

// A mirror says that more Pods have ended than were seen: those that a deadline ended, say, while
// the manager was away.
func TestPodsThatOnlyTheMirrorSaw(t *testing.T) {
	s := newStory(t, 2)
	s.pass(time.Minute)
	s.see(current("west", "m", Times{Count: 1, Ended: 20 * time.Second, Running: 1, Since: s.now.Add(-10 * time.Second)}))
	s.pass(time.Minute)
	then := Times{Count: 1, Ended: 20 * time.Second, Running: 1, Since: s.now.Add(-70 * time.Second)}
	m := s.account.Of(ID{"west", "m"})
	seeded := m
	seeded.Seeded = 4
	for name, row := range map[string]struct {
		account Mirror
		told    int64
		seeded  int64
		then    Times
		listed  Times
		count   int64
		unknown Seconds
	}{
		"it has seen those that were":         {account: m, told: 2, then: then, listed: then},
		"one more":                            {account: m, told: 3, then: then, listed: then, count: 1, unknown: 60},
		"it's there":                          {account: m, told: 3, then: then, listed: Times{Count: 3, Ended: 60 * time.Second}},
		"all are gone":                        {account: m, told: 3, count: 3, unknown: 120},
		"it has no account, and two are gone": {account: Mirror{At: momentOf(created)}, told: 2, count: 2, unknown: 240},
		"it was seeded with what it tells":    {account: seeded, told: 5, seeded: 5, then: then, listed: then},
		"one more than it was seeded with":    {account: seeded, told: 7, seeded: 7, then: then, listed: then, count: 1, unknown: 60},
		"it has no account, and was seeded":   {account: Mirror{At: momentOf(created)}, told: 4, seeded: 4},
	} {
		o := Observation{Created: created, Told: row.told, Seeded: row.seeded, Times: row.listed}
		if got := row.account.Before(row.then, row.listed, &o, s.now); got.Count != row.count || got.Unknown != row.unknown {
			t.Errorf("%s: %d Pods with %v s that are unknown, want %d with %v", name, got.Count, got.Unknown, row.count, row.unknown)
		}
	}
}

// A worker was lost before the hub had seen a Pod of a mirror there, and the mirror is gone, or
// unmarked, when it's back.
func TestPodsOfAMirrorThatNobodySaw(t *testing.T) {
	s := newStory(t, 2)
	s.pass(time.Minute)
	unseen := Mirror{Worker: "west", UID: "m", At: momentOf(created)}
	for name, row := range map[string]struct {
		m    Mirror
		o    Observation
		want Seconds
	}{
		"it's gone":              {unseen, Observation{AtOnce: 2}, 120},
		"it's there":             {unseen, Observation{AtOnce: 2, Created: created}, 0},
		"a Pod of it is":         {unseen, Observation{AtOnce: 2, Times: Times{Running: 1}}, 0},
		"one was seen before":    {Mirror{Worker: "west", UID: "m", At: momentOf(created), Count: 1, Seconds: 5}, Observation{AtOnce: 2}, 0},
		"it's the Job's current": {unseen, Observation{}, 0},
	} {
		if got := row.m.Before(Times{}, Times{}, &row.o, s.now).Unknown; got != row.want {
			t.Errorf("%s: %v s are unknown, want %v", name, got, row.want)
		}
	}
}

// A worker's clock was set while its Pods ended: by their word, they ran on when the account of
// their Job was written, which had ended.
func TestPodsThatEndAfterTheirJob(t *testing.T) {
	at := momentOf(created.Add(time.Minute))
	if got := (&Mirror{UID: "m", Count: 2, At: at, Ended: at}).Accounted(&Observation{}); got.Running != 0 {
		t.Errorf("%d Pods ran on after the end", got.Running)
	}
}

// What is unknown is kept over restarts, and when the Job leaves.
func TestUnknownTimesAddUp(t *testing.T) {
	s := newStory(t, 10)
	s.pass(10 * time.Minute)
	vanished := Times{Count: 1, Ended: 20 * time.Second, Unknown: 40 * time.Second}
	s.see(current("west", "m", vanished))
	s.expectUnknown(40)
	m := s.account.Of(ID{"west", "m"})
	s.before[ID{"west", "m"}] = m.Before(Times{}, Times{}, &Observation{}, s.now)
	s.see(current("west", "m", vanished))
	s.expectUnknown(80)
	s.see(left("west", "m", false, Times{}))
	s.expectUnknown(80)
	if grown := Growth(nil, s.account); grown[0].Unknown != 40 || grown[0].Resource != "cpu" {
		t.Errorf("it has grown by %+v", grown)
	}
}

// An account has the unknown time of the Pods that this process saw vanish if it was written since
// these were listed, or as late as any. It doesn't grow when it's compared anew: the Job has ended,
// or another manager wrote it.
func TestUnknownTimesCountOnce(t *testing.T) {
	for name, row := range map[string]struct {
		// ended is how long before the list the Job did; zero: it runs.
		ended         time.Duration
		account, seen int
		isOlder       bool
		want          float64
	}{
		"it's in the account":               {account: 40, seen: 40, want: 40},
		"as is another's":                   {account: 70, seen: 40, want: 70},
		"it's more than in the account":     {account: 30, seen: 40, want: 40},
		"it isn't in the account":           {account: 30, seen: 40, isOlder: true, want: 70},
		"the Job ended long before":         {account: 40, seen: 40, ended: time.Hour, want: 40},
		"the Job ended, the account is old": {account: 30, seen: 40, ended: time.Minute, isOlder: true, want: 70},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t, 10)
			s.pass(2 * time.Hour)
			listed := s.now
			s.pass(time.Minute)
			m := Mirror{Worker: "west", UID: "m", Unknown: Seconds(row.account), Count: 1, At: momentOf(s.now)}
			if row.isOlder {
				m.At = momentOf(listed.Add(-30 * time.Second))
			}
			if row.ended != 0 {
				m.Ended, s.job.Unfinished = momentOf(listed.Add(-row.ended)), false
				m.At = min(m.At, m.Ended+Moment(afterEnd.Seconds()))
			}
			s.account = Account{m}
			o := current("west", "m", Times{Count: 1, Unknown: time.Duration(row.seen) * time.Second})
			for range 3 { // it's compared anew before each write
				then := Times{Count: 1, Listed: listed}
				m := s.account.Of(ID{"west", "m"})
				s.before[ID{"west", "m"}] = m.Before(then, then, &o, s.now)
				s.see(o)
				s.expectUnknown(row.want)
				s.pass(time.Minute)
			}
		})
	}
}

// A manager that takes the lead has listed Pods after others were gone, and before the last account
// was written.
func TestAStandbyTakesOver(t *testing.T) {
	s := newStory(t, 10)
	s.pass(10 * time.Minute)
	newest := s.now.Add(-time.Minute)
	s.account = Account{{Worker: "west", UID: "m", Seconds: 14, Count: 2, Pods: 1, Since: momentOf(newest), At: momentOf(s.now), Newest: momentOf(newest)}}
	m := s.account.Of(ID{"west", "m"})
	then := Times{Running: 1, Since: newest, Listed: s.now.Add(-5 * time.Minute)}
	o := current("west", "m", Times{Ended: 80 * time.Second, Count: 1, Newest: newest})
	s.before[ID{"west", "m"}] = m.Before(then, then, &o, s.now)
	s.see(o)
	s.expect("west", "pods", 94, 0)
	s.expectUnknown(0)
}
