package plan

import "time"

// deadline is when spec.activeDeadlineSeconds have passed; zero without one. The clock stands still
// while the Job is suspended: resuming it sets startTime anew. A fence doesn't stop the clock, but
// a stopped Job has no deadline.
func (f *facts) deadline() time.Time {
	seconds := f.job.Spec.ActiveDeadlineSeconds
	if seconds == nil || f.stopped() || f.next.StartTime == nil {
		return time.Time{}
	}
	return f.next.StartTime.Add(time.Duration(*seconds) * time.Second)
}
