package devices

import (
	"maps"
	"slices"
	"sync"
)

// allowances are the work that the next trial of a worker's devices may do, by the namespace of its
// Job; there are none while all are mostWork. One namespace may have Jobs that take much. While two
// have less, others begin with as much as the better of them has.
type allowances struct {
	lock sync.Mutex
	of   map[string]int
}

// maxAllowances bounds the namespaces that have one of their own. The others share one.
const maxAllowances = 100

// agedWork is what each trial earns for those of other namespaces: these may have no more Jobs.
const agedWork = leastWork / 20

func newAllowances() *allowances { return &allowances{of: map[string]int{}} }

// allow is the work for one trial. Each one earns some for the next.
func (a *allowances) allow(namespace string) int {
	a.lock.Lock()
	defer a.lock.Unlock()
	allowed := a.left(namespace)
	for key, work := range a.of {
		a.of[key] = min(work+agedWork, mostWork)
	}
	a.set(namespace, allowed+leastWork)
	return allowed
}

// usedUp is for a trial that did all work that it was allowed: the next ones may do less.
func (a *allowances) usedUp(namespace string) {
	a.lock.Lock()
	defer a.lock.Unlock()
	a.set(namespace, a.left(namespace)/2)
}

func (a *allowances) left(namespace string) int {
	if left, is := a.of[a.key(namespace)]; is {
		return left
	}
	if less := a.less(); len(less) >= 2 {
		return slices.Max(less)
	}
	return mostWork
}

// less are those that are less than mostWork.
func (a *allowances) less() []int {
	return slices.DeleteFunc(slices.Collect(maps.Values(a.of)), func(work int) bool { return work >= mostWork })
}

func (a *allowances) set(namespace string, work int) {
	a.of[a.key(namespace)] = min(work, mostWork)
	if isFull := len(a.of) > maxAllowances; isFull || len(a.less()) == 0 {
		maps.DeleteFunc(a.of, func(_ string, work int) bool { return work >= mostWork })
	}
}

// key is that of the allowance that a namespace has.
func (a *allowances) key(namespace string) string {
	if _, is := a.of[namespace]; is || len(a.of) < maxAllowances {
		return namespace
	}
	return ""
}
