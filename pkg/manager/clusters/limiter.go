package clusters

import (
	"context"
	"time"

	"k8s.io/client-go/util/flowcontrol"
)

// limiter is a token bucket that tells how long it made requests wait.
type limiter struct {
	flowcontrol.RateLimiter
	waited func(time.Duration)
}

func newLimiter(options Options, waited func(time.Duration)) limiter {
	return limiter{
		RateLimiter: flowcontrol.NewTokenBucketRateLimiter(options.QPS, options.Burst),
		waited:      waited,
	}
}

// Wait returns when a request may be sent, or with the context's error.
func (l limiter) Wait(ctx context.Context) error {
	if l.TryAccept() {
		return nil
	}
	start := time.Now()
	err := l.RateLimiter.Wait(ctx)
	l.waited(time.Since(start))
	return err
}
