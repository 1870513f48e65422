package shards

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
)

// Whatever a user has written into the annotations, it is refused, or divided by the laws that hold
// for any placement, and can be read again.
func TestDivideOfEditedAnnotations(t *testing.T) {
	count := rapid.Custom(func(t *rapid.T) int32 {
		return rapid.SampledFrom([]int32{0, 1, 3, 10, 1000, math.MaxInt32 - 1, math.MaxInt32, -1}).Draw(t, "count")
	})
	set := rapid.SampledFrom([]string{"", "0", "0-9", "5-20", "30,40,50-59", "0-2147483647", "2147483646-2147483647", "x", "9-5"})
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		state := stateText{Shards: map[string]State{}, Settled: Counters{count.Draw(t, "succeeded"), count.Draw(t, "failed")}}
		var parts []string
		for i := range rapid.IntRange(0, 5).Draw(t, "shards") {
			name := fmt.Sprintf("w%d", i)
			amount := set.Draw(t, "indexes")
			if !Indexed(w.job) {
				amount = fmt.Sprint(count.Draw(t, "number"))
			}
			parts = append(parts, name+"="+amount)
			state.Shards[name] = State{
				Parallelism: count.Draw(t, "parallelism"), Returning: set.Draw(t, "returning"), Stopping: rapid.Bool().Draw(t, "stopping"),
				Counters: Counters{count.Draw(t, "succeeded"), count.Draw(t, "failed")},
			}
		}
		text, err := json.Marshal(state)
		if err != nil {
			t.Fatal(err)
		}
		hubstate.Set(w.job, hubstate.Changes{hubstate.Shards: strings.Join(parts, ";"), hubstate.ShardsState: string(text)})
		placement, err := Read(w.job)
		if err != nil {
			return
		}
		for range 3 {
			placement = Divide(w.job, placement, w.rooms, w.limit)
			hubstate.Set(w.job, placement.Kept())
			if _, err := Read(w.job); err != nil {
				t.Fatalf("%v can't be read: %v", placement.Kept(), err)
			}
			if sum := sumOf(placement.Shards); sum > int(*w.job.Spec.Parallelism) {
				t.Fatalf("the parts add up to %d of %d: %v", sum, *w.job.Spec.Parallelism, placement.Kept())
			}
			Explain(w.job, placement, w.rooms)
		}
	})
}
