package capacity

// maxComparisons is about how often reservations of one namespace, of a plain shape, are compared
// with a node until Continue, to move them and to offer them what is free: a worker may have tens
// of thousands of shapes, and thousands of nodes, and list ever other ones. It's twice as often for
// all namespaces together.
const maxComparisons = 1_000_000

// holdWork is what it takes to hold slots for a reservation on a node, in comparisons.
const holdWork = 25

// maxSeats is about how many reservations of crowded nodes are seated again until Continue: each
// gives its slots back, and is held others. Nodes that have only a few aren't crowded.
const (
	maxSeats   = maxComparisons / (2 * holdWork)
	fewHolders = 100
)

// shares of the comparisons, by namespace: who has much to be compared leaves some to the others.
type shares struct {
	// left are the comparisons that may still be made, and perNamespace those of one namespace.
	left, perNamespace int
	// seats are the reservations that may still be seated again; less than none after a node that had
	// more, and the next ones wait for that.
	seats int
	// used are those of each namespace, less the shares that it has had since.
	used map[string]int
}

func newShares() shares {
	s := shares{used: map[string]int{}}
	s.refill(0)
	return s
}

// refill gives each of the namespaces that were left something its share, and one to those that
// come.
func (s *shares) refill(namespaces int) {
	s.left, s.perNamespace = 2*maxComparisons, min(maxComparisons, 2*maxComparisons/(1+namespaces))
	s.seats = min(s.seats+maxSeats, maxSeats)
	if namespaces == 0 {
		clear(s.used)
	}
	for namespace, used := range s.used {
		if s.used[namespace] = used - s.perNamespace; used <= s.perNamespace {
			delete(s.used, namespace)
		}
	}
}

// areOver reports whether nothing may be compared any more.
func (s *shares) areOver() bool { return s.left <= 0 }

// allow reports whether something of a namespace may be compared now. To ask counts, too: there may
// be as many namespaces as Pods.
func (s *shares) allow(namespace string) bool {
	s.left--
	return s.left >= 0 && s.used[namespace] < s.perNamespace
}

func (s *shares) count(namespace string, comparisons int) {
	s.left -= comparisons
	s.used[namespace] += comparisons
}
