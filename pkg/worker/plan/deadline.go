package plan

import (
	"time"

	"k8s.io/utils/ptr"
)

// deadline is how much of spec.activeDeadlineSeconds is left; nil without one. The clock stands
// still while the Job is suspended: resuming it sets startTime anew. A fence doesn't stop the
// clock, but the verdict has to wait.
func (f *facts) deadline() Wake {
	seconds := f.job.Spec.ActiveDeadlineSeconds
	if seconds == nil || f.stopped() || f.next.StartTime == nil {
		return nil
	}
	allowed := time.Duration(*seconds) * time.Second
	return ptr.To(allowed - f.now.Sub(f.next.StartTime.Time))
}
