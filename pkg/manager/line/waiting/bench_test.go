package waiting_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// BenchmarkWalk looks at 10,000 Jobs that wait for 10 full workers of 100 nodes, when little room
// is freed in one of them, which fits nobody.
func BenchmarkWalk(b *testing.B) {
	const waiters = 10_000
	f := &fleet{rand: rand.New(rand.NewPCG(1, 4)), now: noon}
	for i := range 10 {
		w := newSimWorker(fmt.Sprintf("w%d", i), 100, "8")
		for n := range w.nodes {
			for range 4 {
				job := newSimJob(n, 0, 0, 1, "2")
				job.Runtime = time.Duration(1+f.rand.IntN(1000)) * time.Second
				job.start, job.nodes = noon, []int{n}
				w.running = append(w.running, job)
				w.change(n, job.Shape.Unit(), -1)
			}
		}
		w.change(0, shapeOf("1").Unit(), 1)
		f.workers = append(f.workers, w)
	}
	var jobs []*simJob
	for i := range waiters {
		jobs = append(jobs, newSimJob(i, f.rand.Int32N(3), time.Duration(i)*time.Second, 1+f.rand.Int64N(100), fmt.Sprint(2+f.rand.IntN(7))))
	}
	f.jobs = byKey(jobs, f)
	q := &lineQueue{}
	for _, job := range jobs {
		q.Add(&job.Job)
	}
	changed := freed("w3")
	b.ReportAllocs()
	for b.Loop() {
		if q.Walk(f.now, changed, f); q.Len() != waiters || f.tried > 0 {
			b.Fatalf("%d Jobs wait, %d were tried", q.Len(), f.tried)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/waiters, "µs/Job")
}
