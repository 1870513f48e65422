package capacity

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	. "github.com/jobferry/jobferry/pkg/placement/internal/capacity/capacitytest"

	"github.com/jobferry/jobferry/pkg/placement/internal/change"
)

// TestManyGoroutines has informers, the manager and readers at a Ledger at the same time. The
// callback reads, too: it's called without locks held.
func TestManyGoroutines(t *testing.T) {
	var calls atomic.Int64
	var l *Ledger
	ready := make(chan struct{})
	l = New(func(change.Change) {
		<-ready
		calls.Add(1)
		l.Free(nobody)
	})
	close(ready)
	var work sync.WaitGroup
	for worker := range 4 {
		work.Go(func() {
			for i := range 200 {
				j := NewJob(fmt.Sprint("j", worker, "-", i%10)).Requests("cpu", "1")
				pod := j.Pod(fmt.Sprint("p", worker, "-", i))
				l.SetNode(NewNode(fmt.Sprint("n", i%3)).Obj())
				l.Reserve(j.Key(), shape(j), 2)
				l.SetPod(pod)
				l.SetPod(Bind(pod, fmt.Sprint("n", i%3)))
				l.Free(nobody)
				l.Totals()
				l.Unschedulable(idOf(j))
				l.DeletePod(types.UID(pod.Name))
				l.Release(j.Key())
			}
		})
	}
	work.Wait()
	if calls.Load() == 0 {
		t.Error("never notified of freed capacity")
	}
	s := &story{t: t, Ledger: l}
	s.free("n0=4 n1=4 n2=4")
}
