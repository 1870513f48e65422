package subresources

import (
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// limiter bounds what is under way at once, per user and in all.
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

// enter takes a place, which leave gives back, or answers with an API status error. There's no
// Retry-After on it: clients that obey one would hang where a person wants to hear that something
// else must be closed first.
func (l *limiter) enter(user string) (leave func(), err error) {
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
	return sync.OnceFunc(func() { l.leave(user) }), nil
}

func (l *limiter) leave(user string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	if l.of[user]--; l.of[user] == 0 {
		delete(l.of, user)
	}
}
