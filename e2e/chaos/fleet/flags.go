package fleet

import "time"

// Shares of the time after which a worker is lost. With both together the fence closes well before
// that.
const (
	// leaseShare is how long the hub's Lease in a worker lasts.
	leaseShare = 5
	// fenceShare is, by default, how long after the Lease's expiry a worker stops its Jobs.
	fenceShare = 3
	// passOver is how long a worker that refused a Job is no candidate for it.
	passOver = 30 * time.Second
)

func (f *Fleet) managerFlags() []string {
	lease := max(f.options.LostAfter/leaseShare, time.Second).Truncate(time.Second)
	return []string{"--worker-lost-timeout=" + f.options.LostAfter.String(), "--fence-lease-duration=" + lease.String(),
		"--pass-over=" + passOver.String()}
}

func (f *Fleet) fenceAfter() time.Duration {
	if f.options.FenceAfter > 0 {
		return f.options.FenceAfter
	}
	return f.options.LostAfter / fenceShare
}
