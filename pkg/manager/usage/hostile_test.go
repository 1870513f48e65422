package usage

import (
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
