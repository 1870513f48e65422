package job

import (
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/jobferry/jobferry/pkg/manager/clusters"
	"github.com/jobferry/jobferry/pkg/mirror/recentfields"
)

// fieldSupport remembers which recent fields of a Job's spec each worker keeps, and which it drops:
// for as long as the worker is connected and has the same version. That a field is dropped is
// forgotten after a while, too: a feature gate can be switched on in an API server without a break
// in the connection. That it's kept is seen anew in the answer to each create.
type fieldSupport struct {
	clock   clock.PassiveClock
	expires time.Duration

	mu      sync.Mutex
	workers map[string]*workerFieldSupport
}

// workerFieldSupport is what is remembered of one worker.
type workerFieldSupport struct {
	version string
	since   time.Time
	// keeps and drops are paths; of the latter, with the time at which that was seen.
	keeps map[string]bool
	drops map[string]time.Time
}

// versioned is what is read of a worker to know whether it's still the same.
type versioned interface {
	Name() string
	View() clusters.View
}

// fieldSupportExpires is longer than a worker is passed over for a Job, so that a Job whose fields
// no worker keeps isn't placed on each of them again and again.
const fieldSupportExpires = 30 * time.Minute

// maxSupportPaths bounds what is remembered of a worker: when there are more paths, it starts
// again.
const maxSupportPaths = 512

func newFieldSupport(clock clock.PassiveClock, expires time.Duration) *fieldSupport {
	return &fieldSupport{clock: clock, expires: expires, workers: map[string]*workerFieldSupport{}}
}

// ofLocked returns what is remembered of a worker as it is connected now.
func (f *fieldSupport) ofLocked(v versioned) *workerFieldSupport {
	view := v.View()
	known := f.workers[v.Name()]
	if known == nil || known.version != view.Version || !known.since.Equal(view.Observed) {
		known = &workerFieldSupport{version: view.Version, since: view.Observed, keeps: map[string]bool{}, drops: map[string]time.Time{}}
		f.workers[v.Name()] = known
	}
	for path, at := range known.drops {
		if f.clock.Since(at) >= f.expires {
			delete(known.drops, path)
		}
	}
	return known
}

// learn takes over what a worker made of the recent fields of a Job.
func (f *fieldSupport) learn(v workerView, sent recentfields.Fingerprints, lost []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.ofLocked(v)
	if len(known.keeps)+len(known.drops) > maxSupportPaths {
		clear(known.keeps)
		clear(known.drops)
	}
	for path := range sent {
		known.keeps[path] = true
		delete(known.drops, path)
	}
	for _, path := range lost {
		delete(known.keeps, path)
		known.drops[path] = f.clock.Now()
	}
}

// ask returns which recent fields of a Job a worker drops, and whether it keeps all of them;
// neither: that isn't known.
func (f *fieldSupport) ask(v workerView, sent recentfields.Fingerprints) (dropped []string, all bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.ofLocked(v)
	all = true
	for _, path := range sent.Paths() {
		if _, drops := known.drops[path]; drops {
			dropped = append(dropped, path)
		}
		all = all && known.keeps[path]
	}
	return dropped, all
}

// drops returns all paths that a worker is known to drop.
func (f *fieldSupport) drops(v versioned) map[string]bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.ofLocked(v)
	if len(known.drops) == 0 {
		return nil
	}
	paths := make(map[string]bool, len(known.drops))
	for path := range known.drops {
		paths[path] = true
	}
	return paths
}

// forget drops a worker that was removed.
func (f *fieldSupport) forget(worker string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.workers, worker)
}
