package fleet

import "time"

const (
	// fenceLease is how long the hub's Lease in a worker lasts.
	fenceLease = 6 * time.Second
	// fenceShare of the time after which a worker is lost is, by default, how long after the Lease's expiry it stops its Jobs.
	fenceShare = 3
)

func (f *Fleet) managerFlags() []string {
	return []string{"--worker-lost-timeout=" + f.options.LostAfter.String(), "--fence-lease-duration=" + fenceLease.String()}
}

func (f *Fleet) fenceAfter() time.Duration {
	if f.options.FenceAfter > 0 {
		return f.options.FenceAfter
	}
	return f.options.LostAfter / fenceShare
}
