package subresources

import (
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// limiter bounds the concurrent requests, per user and in total.
type limiter struct {
	what           string
	perUser, total int

	mu   sync.Mutex
	of   map[string]int
	open int
}

func newLimiter(what string, perUser, total int) *limiter {
	return &limiter{what: what, perUser: perUser, total: total, of: map[string]int{}}
}

// acquire takes a slot, which release frees, or returns an API status error. The error has no
// Retry-After: a client that obeys one would wait silently, where the user must end something
// first.
func (l *limiter) acquire(user string) (release func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.of[user] >= l.perUser:
		return nil, apierrors.NewTooManyRequestsError(fmt.Sprintf(
			"user %q has %d %s open here, which is the limit: end some of them first", user, l.of[user], l.what))
	case l.open >= l.total:
		return nil, apierrors.NewTooManyRequestsError(fmt.Sprintf(
			"%d %s of all users are open here, which is the limit: try again later", l.open, l.what))
	}
	l.of[user]++
	l.open++
	return sync.OnceFunc(func() { l.release(user) }), nil
}

func (l *limiter) release(user string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	if l.of[user]--; l.of[user] == 0 {
		delete(l.of, user)
	}
}
