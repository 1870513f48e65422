package usage

import (
	"fmt"
	"math"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/util/costtest"
)

// A worker may give its mirror the UID of another worker's.
func TestAForgedUIDChargesNobodyElse(t *testing.T) {
	s := newStory(t, 1)
	s.pass(time.Minute)
	s.see(current("honest", "m", ended(10, 10)))
	s.pass(time.Hour)
	s.see(current("liar", "m", ended(1000, 0)), left("honest", "m", true, ended(10, 10)))
	s.expect("honest", "pods", 10, 0)
	s.expect("liar", "pods", 1000, 0)
}

// However many Pods a Job may have, and for however long: its account can be read again.
func TestWhatIsUnknownErasesNothing(t *testing.T) {
	s := newStory(t, math.MaxInt32)
	s.pass(time.Minute)
	s.see(current("west", "m", ended(10, 10)))
	s.pass(30 * 24 * time.Hour)
	s.before[ID{"west", "m"}] = Before{Seconds: 10, Unknown: 1e18, Count: 1}
	s.see(current("west", "m", Times{}))
	s.expect("west", "pods", 10, 0)
}

// A worker that drips what its Pods ran isn't worth a write each time.
func TestAnAccountLacksNothingSmall(t *testing.T) {
	mirror := func(seconds Seconds) Account {
		return Account{{Worker: "west", UID: "m", Seconds: seconds, Left: true}}
	}
	for _, row := range []struct {
		was, is Seconds
		lacks   bool
	}{{10, 10.999, false}, {10, 11, true}, {1e6, 1e6 + 199, false}, {1e6, 1e6 + 200, true}} {
		if lacks := mirror(row.was).Lacks(mirror(row.is), false); lacks != row.lacks {
			t.Errorf("%v, and then %v: %v", row.was, row.is, lacks)
		}
	}
}

// The mirrors of very many workers aren't each looked for among all the others: what all take grows
// as their number, and not as its square, and no copy of all is made for each that the account has
// no place for.
func TestManyWorkers(t *testing.T) {
	look := func(workers int) (took time.Duration, cost uint64) {
		s := newStory(t, 1000)
		s.pass(time.Minute)
		var seen []Observation
		for i := range workers {
			seen = append(seen, current(fmt.Sprint("worker-", i), "m", Times{Running: 1, Since: s.now, Ended: time.Second}))
		}
		next := s.account.Next(s.job, seen, s.before, s.now)
		again := func() {
			next = next.Next(s.job, seen, s.before, s.now)
			next.Lacks(next, true)
			next.Open(next, seen, true)
			next.Stale(seen)
			Growth(next, next)
		}
		cost = costtest.Of(again)
		took = time.Hour
		for range 3 {
			begun := time.Now()
			again()
			took = min(took, time.Since(begun))
		}
		return took, cost
	}
	few, _ := look(10)
	many, cost := look(2000)
	if many > 5000*few { // 40,000 times, if each is compared with all
		t.Errorf("%s for 10 workers, and %s for 2,000", few, many)
	}
	if cost > 8<<20 {
		t.Errorf("%d MiB for 2,000 workers", cost>>20)
	}
}

// An account is read in what it's long, whoever has written it.
func FuzzCost(f *testing.F) {
	f.Add("[{}", ",{}", "]")
	f.Add(`[{"requests":{"a":"1"`, `,"a":"1e1"`, "}}]")
	f.Add(`[{"requests":{"a":"1e9999"`, " ", "x")
	f.Add(`["1e9999"`, ",[", "")
	costtest.Check(f, 64<<10, 100, func(text string) {
		job := &batchv1.Job{}
		hubstate.Set(job, hubstate.Changes{hubstate.Usage: text})
		Read(job)
	})
}
