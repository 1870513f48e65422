package devices

import (
	"sync"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/utils/lru"
)

// memo keeps what was found out about a worker's devices, as long as its DeviceClasses are the
// same. What it knows of a node holds for every node that is alike, and when that node is like this
// again.
type memo struct {
	// compiled selectors, and the most that an evaluation of each costs.
	compiled *cel.Cache
	costs    *lru.Cache
	// allowances stay when the DeviceClasses change.
	allowances *allowances

	lock sync.Mutex
	// numbers of nodes that are alike.
	numbers map[digest]int32
	answers map[question]answer
}

// question is how many Pods find their devices on a node.
type question struct {
	claims digest
	node   int32
}

// answer to a question.
type answer struct {
	pods int64
	// more: there may be devices for more Pods than these.
	more bool
	// refusal is why there are no devices for one Pod, or the next; broken: it's an error after which
	// the scheduler gives up.
	refusal string
	broken  bool
}

// maxNumbers and maxAnswers bound what is kept.
const (
	maxNumbers = 5_000
	maxAnswers = 10_000
)

// noNumber is of nodes that are more than are numbered, of which nothing is kept; noDevices of
// those without devices of their own.
const (
	noNumber  = -1
	noDevices = 0
)

func newMemo(compiled *cel.Cache, a *allowances) *memo {
	return &memo{
		compiled: compiled, costs: lru.New(compiledSelectors), allowances: a,
		numbers: map[digest]int32{{}: noDevices}, answers: map[question]answer{},
	}
}

// isFull reports whether nodes may come that get no number.
func (m *memo) isFull() bool {
	m.lock.Lock()
	defer m.lock.Unlock()
	return len(m.numbers) > maxNumbers/2
}

func (m *memo) number(of digest) int32 {
	m.lock.Lock()
	defer m.lock.Unlock()
	number, known := m.numbers[of]
	if known {
		return number
	}
	if len(m.numbers) >= maxNumbers {
		return noNumber
	}
	number = int32(len(m.numbers)) //nolint:gosec // not more than maxNumbers
	m.numbers[of] = number
	return number
}

func (m *memo) answer(q question) (a answer, known bool) {
	m.lock.Lock()
	defer m.lock.Unlock()
	a, known = m.answers[q]
	return a, known
}

func (m *memo) keep(q question, a answer) {
	m.lock.Lock()
	defer m.lock.Unlock()
	if len(m.answers) >= maxAnswers {
		clear(m.answers)
	}
	m.answers[q] = a
}

// cost is the most work that an evaluation of a selector may take. One that isn't compiled costs
// mostWork. To find it out is work, too, which is spent before.
func (m *memo) cost(expression string, consumableCapacity bool, spend func(work int)) int {
	if work, known := m.costs.Get(expression); known {
		return work.(int)
	}
	spend(max(compileWork, len(expression)*compileByteWork))
	work := mostWork
	compile := func(expression string) cel.CompilationResult {
		return cel.GetCompiler(cel.Features{EnableConsumableCapacity: consumableCapacity}).CompileCELExpression(expression, cel.Options{})
	}
	// Errors of compile repeat the selector, and take gigabytes of a long one.
	if isBounded(expression) && isValid(compile("true").Environment, expression) {
		if compiled := compile(expression); compiled.Error == nil { // else the allocator would compile it for each node
			work = selectWork + int(min(compiled.MaxCost, resourcev1.CELSelectorExpressionMaxCost)/costPerWork) //nolint:gosec // not more than the limit
		}
	}
	m.costs.Add(expression, work)
	return work
}
