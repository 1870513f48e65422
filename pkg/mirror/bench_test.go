package mirror

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/pkg/mirror/intervals"
	"github.com/jobferry/jobferry/pkg/mirror/mirrortest"
)

// The steady state: nothing has changed.
func BenchmarkSteadyState(b *testing.B) {
	var even []int
	for i := 0; i < 100_000; i += 2 {
		even = append(even, i)
	}
	for name, hub := range map[string]*batchv1.Job{
		"one Pod":         job().Started(noon).Pods(1, 1, 0).Obj(),
		"100,000 indexes": mirrortest.New("job").Indexed(100_000).Started(noon).Counted(50_000, 0).CompletedIndexes(intervals.Of(even...).String()).Obj(),
	} {
		m := mirrorOf(hub, aTarget)
		m.Status = *hub.Status.DeepCopy()
		b.Run("Reflect/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if got := Reflect(hub, m, now); got != (Unchanged{}) {
					b.Fatalf("got %T", got)
				}
			}
		})
		b.Run("Drift/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if got, ok := Drift(hub, m, aTarget).(None); !ok || got.Notes != nil {
					b.Fatalf("got %+v", got)
				}
			}
		})
	}
}
