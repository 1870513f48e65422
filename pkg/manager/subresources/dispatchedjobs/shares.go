package dispatchedjobs

// share is which part of the free places a namespace may take.
const share = 4

// shares are places that namespaces share: one gets a further place only while it has less than a
// quarter of those that are free.
type shares struct {
	all, taken int
	of         map[string]int // namespace
}

func newShares(all int) shares { return shares{all: all, of: map[string]int{}} }

// take takes a place, if there is one.
func (s *shares) take(namespace string) bool {
	if share*s.of[namespace] >= s.all-s.taken {
		return false
	}
	s.of[namespace]++
	s.taken++
	return true
}

// give gives a place back.
func (s *shares) give(namespace string) {
	s.taken--
	if s.of[namespace]--; s.of[namespace] == 0 {
		delete(s.of, namespace)
	}
}
