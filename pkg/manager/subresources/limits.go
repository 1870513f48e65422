package subresources

import (
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/jobferry/jobferry/pkg/util/places"
)

// retryAfterSeconds is what a refused client waits before its next attempt. Clients of Kubernetes
// make ten attempts, then they show the message.
const retryAfterSeconds = 1

// requestsPerUser bounds what a user has open in this replica beside streams and watches.
const requestsPerUser = 20

// limiter bounds what is open at a time. Holders, such as namespaces, share its places.
type limiter struct {
	what string
	// perUser bounds one user over all holders. Zero: no bound.
	perUser, total int

	mu    sync.Mutex
	users map[string]int
	held  *places.Shared
}

func newLimiter(what string, perUser, total int) *limiter {
	return &limiter{what: what, perUser: perUser, total: total, users: map[string]int{}, held: places.NewShared(total)}
}

// acquire takes a place, which release frees, or returns an API status error that names the limit.
// An empty user stands for many, who have no bound of their own.
func (l *limiter) acquire(user, holder string) (release func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.perUser > 0 && user != "" && l.users[user] >= l.perUser:
		return nil, apierrors.NewTooManyRequests(fmt.Sprintf(
			"user %q has %d %s open here, which is the limit for a user: end some of them first", user, l.users[user], l.what), retryAfterSeconds)
	case !l.held.Take(holder):
		return nil, apierrors.NewTooManyRequests(fmt.Sprintf(
			"%s has %d %s open here, and %d of %d places are free, of which one may have a quarter: end some of them, or try again later",
			holder, l.held.Of(holder), l.what, l.held.Free(), l.total), retryAfterSeconds)
	}
	l.users[user]++
	return sync.OnceFunc(func() { l.release(user, holder) }), nil
}

func (l *limiter) release(user, holder string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.users[user]--; l.users[user] == 0 {
		delete(l.users, user)
	}
	l.held.Give(holder)
}
