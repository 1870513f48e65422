// Package workerpanic contains panics in the code that judges or reads a worker's objects. Such a
// panic concerns that worker alone, and doesn't end the manager: Contain recovers, counts it, and
// logs its stack.
//
// The callers cover what is left out of an object before it's held, what the manager reads of a
// worker for one Job, how it judges that, the nodes that the worker's autoscaler may add, what the
// autoscaler says, and what is asked of a worker for the Pods on the hub. They don't cover those
// who keep what they need of each object, nor what a walk through the waiting Jobs computes of
// nodes and of expected ends: these are plain values.
//
// The line's lock is held while a worker is judged, and so while a stack is logged: at most once a
// minute for a worker. An explanation shows a panic to its user, and neither counts nor logs it.
//
// The counter belongs to the process, as all metrics do. So does the time at which a stack was last
// logged, by the real clock, which decides nothing else. So any code that reads a worker's objects
// can call Contain, and passes nothing else to it. A Report that comes after Forget brings the
// worker's series back until the process ends. There is at most one series for each name of a
// worker.
//
// The function that Contain calls must release its locks by defer. Otherwise a panic would block
// the worker, or others.
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

// logEvery is the least time between two stacks that are logged of one worker: each Job that waits
// may cause one.
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
