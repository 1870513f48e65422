// Package workerpanic keeps what one worker has made up from ending the manager: a panic in what judges or reads its
// objects is counted and logged with its stack, and concerns that worker alone.
//
// That covers what is read of a worker for one Job, the judgement of that, the nodes that its autoscaler may add, and
// what the autoscaler says. It doesn't cover what a walk through the Jobs that wait computes of nodes and of expected
// ends: these are plain values.
//
// The scheduler's lock is held where a worker is judged, and a stack is logged under it: once a minute for a worker at
// most. A judgement for an explanation alone says so to its user, and is neither counted nor logged.
//
// What is counted belongs to the process, as all metrics do, and so does when a stack was last logged, by the real
// clock, which decides nothing else. So Contain can be called wherever a worker's objects are read, and nothing has to
// be passed there. A Report of a worker that comes after Forget brings its series back for as long as the process
// runs: there is at most one for each name of a worker.
//
// Who calls Contain must not hold a lock in f that isn't released by defer: the worker, or others, would stand still.
package workerpanic

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var total = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "jobferry_worker_panics_total",
	Help: "How often judging or reading a worker's objects ended in a panic, which concerned that worker alone.",
}, []string{"worker"})

func init() { metrics.Registry.MustRegister(total) }

// logEvery is the least time between two stacks that are logged of one worker: each Job that waits may cause one.
const logEvery = time.Minute

var logged struct {
	sync.Mutex
	at map[string]time.Time
}

// Contain calls f, and reports whether it didn't panic.
func Contain(worker string, f func()) (ok bool) {
	defer func() {
		if cause := recover(); cause != nil {
			Report(worker, fmt.Sprintf("%v\n%s", cause, debug.Stack()))
			ok = false
		}
	}()
	f()
	return true
}

// Report counts and logs a panic that was contained elsewhere.
func Report(worker, cause string) {
	total.WithLabelValues(worker).Inc()
	logged.Lock()
	defer logged.Unlock()
	if now := time.Now(); now.Sub(logged.at[worker]) >= logEvery {
		if logged.at == nil {
			logged.at = map[string]time.Time{}
		}
		logged.at[worker] = now
		log.Log.Error(errors.New(cause), "A worker's objects can't be judged", "worker", worker)
	}
}

// Forget drops what is known of a worker that was removed.
func Forget(worker string) {
	total.DeleteLabelValues(worker)
	logged.Lock()
	defer logged.Unlock()
	delete(logged.at, worker)
}
