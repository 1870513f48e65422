package fleet

import "time"

const (
	// fenceLease is how long the hub's Lease in a worker lasts.
	fenceLease = 6 * time.Second
	// fenceShare of the time after which a worker is lost: so long after the Lease's expiry a worker stops its Jobs.
	fenceShare = 3
)

func (f *Fleet) managerFlags() []string {
	return []string{"--worker-lost-timeout=" + f.options.LostAfter.String(), "--fence-lease-duration=" + fenceLease.String()}
}

func (f *Fleet) fenceAfter() time.Duration { return f.options.LostAfter / fenceShare }
