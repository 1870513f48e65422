package clusters

import (
	"context"
	"time"
)

// supervise is the one goroutine that decides over a worker's connection, until the context ends.
//
//	timer ─────────────────────────────────────────────┐
//	wake (settings, kubeconfig, an informer) ──────────┼─> sync: link.Keep, feed.Run,
//	link (a request failed, takes long, breaks bounds) ┘         feed.Readiness ──> observe
func (w *Worker) supervise(ctx context.Context, identities *identities) {
	defer close(w.done)
	defer func() {
		w.releaseLease(context.WithoutCancel(ctx))
		w.link.Close()
		w.feed.Stop()
		identities.forget(w.name)
	}()
	timer := w.options.Clock.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.woken:
		case <-timer.C():
		}
		pause := w.sync(ctx)
		if !timer.Stop() {
			select {
			case <-timer.C():
			default:
			}
		}
		timer.Reset(pause)
	}
}

// sync does what is due, and returns the time until something is again.
func (w *Worker) sync(ctx context.Context) time.Duration {
	if current := w.link.Keep(ctx); !current {
		return 0
	}
	if ctx.Err() == nil {
		spec := w.View().Spec
		w.feed.Run(ctx, spec.Capacity)
		w.observe(w.feed.Readiness(), w.feed.State(&spec), w.keepLease(ctx))
	}
	return min(w.link.Due(), w.lease.Due())
}
