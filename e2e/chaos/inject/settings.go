package inject

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// spec changes a worker's settings, and back. Admins try again while the hub's API server is away.
func (f fault) spec(change func(s *v1alpha1.WorkerClusterSpec, on bool)) (func() error, error) {
	set := func(ctx context.Context, on bool) error {
		return retry(ctx, func() error { return f.fleet.SetSpec(ctx, f.Target, change, on) })
	}
	return func() error { return set(context.WithoutCancel(f.ctx), false) }, set(f.ctx, true)
}

// retryFor is how long an admin retries.
const retryFor = 2 * time.Minute

func retry(ctx context.Context, do func() error) error {
	ctx, cancel := context.WithTimeout(ctx, retryFor)
	defer cancel()
	var last error
	_ = wait.PollUntilContextCancel(ctx, 200*time.Millisecond, true, func(context.Context) (bool, error) {
		last = do()
		return last == nil, nil
	}) // why it ended without success is in last
	return last
}
