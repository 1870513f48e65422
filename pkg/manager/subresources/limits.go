package subresources

import (
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// retryAfterSeconds is what a refused client waits before its next attempt. Clients of Kubernetes
// make ten attempts, then they show the message.
const retryAfterSeconds = 1

// requestsPerUser bounds what a user has open in this replica beside streams and watches.
const requestsPerUser = 20

// share is which part of the free places a holder may hold: a quarter.
const share = 4

// limiter bounds what is open at a time. Its places are shared: a holder, such as a namespace, gets
// one more only while it has less than a quarter of those that are free. So one holder gets a fifth
// of all at most, those that come after it less and less, and of 1000 places there is one for the
// next holder after 25 that have taken all they could.
type limiter struct {
	what string
	// perUser bounds one user over all holders. Zero: no bound.
	perUser, total int

	mu    sync.Mutex
	users map[string]int
	held  map[string]int // by holder
	open  int
}

func newLimiter(what string, perUser, total int) *limiter {
	return &limiter{what: what, perUser: perUser, total: total, users: map[string]int{}, held: map[string]int{}}
}

// acquire takes a place, which release frees, or returns an API status error that names the limit.
// An empty user stands for many, who have no bound of their own.
func (l *limiter) acquire(user, holder string) (release func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	free := l.total - l.open
	switch {
	case l.perUser > 0 && user != "" && l.users[user] >= l.perUser:
		return nil, apierrors.NewTooManyRequests(fmt.Sprintf(
			"user %q has %d %s open here, which is the limit for a user: end some of them first", user, l.users[user], l.what), retryAfterSeconds)
	case share*l.held[holder] >= free:
		return nil, apierrors.NewTooManyRequests(fmt.Sprintf(
			"%s has %d %s open here, and %d of %d places are free, of which one may have a quarter: end some of them, or try again later",
			holder, l.held[holder], l.what, free, l.total), retryAfterSeconds)
	}
	l.users[user]++
	l.held[holder]++
	l.open++
	return sync.OnceFunc(func() { l.release(user, holder) }), nil
}

func (l *limiter) release(user, holder string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	decrement(l.users, user)
	decrement(l.held, holder)
}

// decrement counts down, and forgets what has reached zero.
func decrement(counts map[string]int, key string) {
	if counts[key]--; counts[key] == 0 {
		delete(counts, key)
	}
}
