package checker

import "github.com/jobferry/jobferry/pkg/mirror/intervals"

// covers reports whether one set of indexes holds all of another; texts that can't be read hold
// nothing.
func covers(all, some string) bool {
	if all == some || some == "" {
		return true
	}
	a, errA := intervals.ParseStrict(all, intervals.NoLimit)
	s, errS := intervals.ParseStrict(some, intervals.NoLimit)
	return errA == nil && errS == nil && s.SubsetOf(a)
}
