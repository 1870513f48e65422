package worker

import (
	"sync"
	"time"

	"github.com/jobferry/jobferry/pkg/util/wake"
)

const (
	// fewPods are too few for a sync of their own while others run: it would cost a status write
	// for less than ten Pods.
	fewPods = 10
	// enoughOf is the part of a Job's Pods that is worth a sync, whatever their number.
	enoughOf = 4
	// fullBatchWait is the part of SyncBatchPeriod that a full batch waits for stragglers.
	fullBatchWait = 10
)

// batch counts the Pods of a Job that end between two syncs. An event of a Pod waits
// SyncBatchPeriod for more, but only a tenth of it once all Pods have ended, or a quarter of them
// that is ten or more. So the period doesn't delay a Job of short Pods, and a status write still
// covers many Pods.
type batch struct {
	lock  sync.Mutex
	ended int // since the last sync began
	size  int // how many make a batch; 0: not known, a sync is under way or has failed
}

// open begins the next batch: the sync that starts now sees what has ended so far.
func (b *batch) open() {
	b.lock.Lock()
	defer b.lock.Unlock()
	b.ended, b.size = 0, 0
}

// expect takes the number of Pods that hadn't ended in the sync, and reports whether enough have
// ended since.
func (b *batch) expect(running int32) (full bool) {
	b.lock.Lock()
	defer b.lock.Unlock()
	n := int(running)
	b.size = max(1, min(n, max(fewPods, n/enoughOf)))
	return b.ended >= b.size
}

// add counts a Pod that has ended, and reports whether the batch is full.
func (b *batch) add() (full bool) {
	b.lock.Lock()
	defer b.lock.Unlock()
	b.ended++
	return b.size > 0 && b.ended >= b.size
}

// shortWait is how long a full batch waits.
func (o Options) shortWait() time.Duration { return wake.In(o.SyncBatchPeriod / fullBatchWait) }
