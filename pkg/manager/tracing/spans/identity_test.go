package spans_test

import (
	"encoding/hex"
	"math"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/jobferry/jobferry/pkg/manager/tracing/spans"
)

func TestTraceOf(t *testing.T) {
	id := spans.TraceOf("0b8f7bd2-68f4-4f3a-9d1c-1f2e3d4c5b6a")
	if got := hex.EncodeToString(id[:]); got != "0b8f7bd268f44f3a9d1c1f2e3d4c5b6a" {
		t.Errorf("%s", got)
	}
	seen := map[spans.TraceID]types.UID{}
	for _, uid := range []types.UID{"", "x", "y", "-", "00000000-0000-0000-0000-000000000000", "0b8f7bd2-68f4-4f3a-9d1c-1f2e3d4c5b6", "0b8f7bd268f44f3a9d1c1f2e3d4c5b6a0000"} {
		id := spans.TraceOf(uid)
		if other, has := seen[id]; has || id == (spans.TraceID{}) {
			t.Errorf("%q has the trace %x of %q", uid, id, other)
		}
		seen[id] = uid
	}
}

// Spans of a trace have different IDs, and the same phase always the same.
func TestSpanIDs(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	of := []spans.Span{
		{Name: spans.Job}, {Name: spans.Waiting, Start: at}, {Name: spans.Running, Worker: "a", Start: at}, {Name: spans.Running, Worker: "b", Start: at},
		{Name: spans.Running, Worker: "a", Start: at.Add(1)}, {Name: spans.Moving, Worker: "a", Start: at}, {Name: spans.Moving, Worker: "a"},
	}
	seen := map[spans.SpanID]bool{}
	for _, uid := range []types.UID{"one", "two"} {
		for _, s := range of {
			id := s.ID(uid)
			if seen[id] || id == (spans.SpanID{}) || s.ID(uid) != id {
				t.Errorf("%s of %s: %x", s.Name, uid, id)
			}
			seen[id] = true
			s.End = s.End.Add(time.Hour)
			if s.ID(uid) != id {
				t.Errorf("%s: another end makes another span", s.Name)
			}
		}
		if (spans.Span{Name: spans.Job, Start: at}).ID(uid) != spans.Root(uid) {
			t.Error("the root depends on its start")
		}
	}
}

// Of UIDs as API servers make them, as many are sampled as the rate says: they aren't random in all
// bits.
func TestSampled(t *testing.T) {
	const n = 20_000
	for _, rate := range []int32{-1, 0, 1_000, 100_000, 500_000, spans.Million} {
		count := 0
		for range n {
			if spans.Sampled(uuid.NewUUID(), rate) {
				count++
			}
		}
		p := float64(max(rate, 0)) / spans.Million
		if off := math.Abs(float64(count) - n*p); off > 6*math.Sqrt(n*p*(1-p)) {
			t.Errorf("at %d per million, %d of %d", rate, count, n)
		}
	}
	if testing.AllocsPerRun(100, func() { spans.Sampled("0b8f7bd2-68f4-4f3a-9d1c-1f2e3d4c5b6a", 1000) }) > 0 {
		t.Error("it allocates")
	}
}
