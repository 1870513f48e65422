package job

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/manager/kueue"
	"github.com/jobferry/jobferry/pkg/manager/placement"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// outlooks remembers whether Jobs that are to be placed while they're suspended have a place, for
// those who decide over their quota. Nothing is lost with it: the next look at the Job finds the
// same.
type outlooks struct {
	mu      sync.Mutex
	jobs    map[types.UID]kueue.Outlook
	changed func(types.NamespacedName)
}

func newOutlooks(changed func(types.NamespacedName)) *outlooks {
	return &outlooks{jobs: map[types.UID]kueue.Outlook{}, changed: changed}
}

// Placed remembers that room is held for a Job in a worker.
func (o *outlooks) Placed(s *dispatch.Snapshot) {
	o.set(s, kueue.Outlook{Since: s.Terms.Since, Worker: s.Home.Worker})
}

// Unplaced remembers a decision that found no worker.
func (o *outlooks) Unplaced(s *dispatch.Snapshot, decision placement.Decision) {
	o.set(s, kueue.Outlook{Since: s.Terms.Since, Why: decision.Named(), MayPass: decision.MayFitLater()})
}

func (o *outlooks) set(s *dispatch.Snapshot, outlook kueue.Outlook) {
	if !s.Terms.Reserved || !mirror.Suspended(s.Job) {
		return
	}
	o.mu.Lock()
	before := o.jobs[s.Job.UID]
	o.jobs[s.Job.UID] = outlook
	o.mu.Unlock()
	if before != outlook {
		o.changed(s.Key)
	}
}

// Of implements kueue.Dispatcher.
func (o *outlooks) Of(uid types.UID) (kueue.Outlook, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	outlook, known := o.jobs[uid]
	return outlook, known
}

// Forget drops a Job.
func (o *outlooks) Forget(uid types.UID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.jobs, uid)
}
