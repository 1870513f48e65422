package checker

import "github.com/jobferry/jobferry/pkg/mirror"

// covers says whether one set of indexes holds all of another; texts that can't be read hold
// nothing.
func covers(all, some string) bool {
	if all == some || some == "" {
		return true
	}
	a, errA := mirror.ParseIntervals(all, mirror.MaxIndexBytes)
	s, errS := mirror.ParseIntervals(some, mirror.MaxIndexBytes)
	return errA == nil && errS == nil && s.SubsetOf(a)
}
