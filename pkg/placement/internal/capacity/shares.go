package capacity

// maxComparisons is about how often reservations of one namespace, of a plain shape, are compared
// with a node until Continue, to move them and to offer them what is free: a worker may have tens
// of thousands of shapes, and thousands of nodes, and list ever other ones. It's twice as often for
// all namespaces together.
const maxComparisons = 1_000_000

// shares of the comparisons, by namespace: who has much to be compared leaves some to the others.
type shares struct {
	// left are the comparisons that may still be done, and each those of one namespace.
	left, each int
	// done are those of each namespace, less the shares that it has had since.
	done map[string]int
	// late are the namespaces that were left something since the last deal.
	late map[string]struct{}
}

func newShares() shares {
	s := shares{done: map[string]int{}, late: map[string]struct{}{}}
	s.deal()
	return s
}

// deal gives each namespace that was left something its share, and one to those that come.
func (s *shares) deal() {
	s.left, s.each = 2*maxComparisons, min(maxComparisons, 2*maxComparisons/(1+len(s.late)))
	if len(s.late) == 0 {
		clear(s.done)
	}
	for namespace, done := range s.done {
		if s.done[namespace] = done - s.each; done <= s.each {
			delete(s.done, namespace)
		}
	}
	clear(s.late)
}

// areOver reports whether nothing may be compared any more.
func (s *shares) areOver() bool { return s.left <= 0 }

// allow reports whether something of a namespace may be compared now. To ask counts, too: there may
// be as many namespaces as Pods.
func (s *shares) allow(namespace string) bool {
	if s.left--; s.left >= 0 && s.done[namespace] < s.each {
		return true
	}
	s.late[namespace] = struct{}{}
	return false
}

func (s *shares) count(namespace string, comparisons int) {
	s.left -= comparisons
	s.done[namespace] += comparisons
}
