package chaos

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/jobferry/jobferry/e2e/chaos/checker"
	"github.com/jobferry/jobferry/e2e/rig"
)

// audit reports each status of a Job that the hub's API server rejected.
func (r *run) audit(context.Context) error {
	requests, err := r.fleet.Hub.Requests()
	if err != nil {
		return err
	}
	r.recorder.do(func(c *checker.Checker, _ time.Duration) {
		for _, q := range requests {
			if isRejectedStatus(q) {
				c.Report(checker.Violation{
					At: q.Received.Sub(r.recorder.began), Rule: checker.Rejected, Job: q.Object.Name,
					Text: fmt.Sprintf("the hub's API server answers %d to %s of the status by %s", q.Response.Code, q.Verb, q.User.Username),
				})
			}
		}
	})
	return nil
}

// isRejectedStatus: not counted are those that came too late, and so found another version of the
// Job, or none; and those that the server had no time for.
func isRejectedStatus(q rig.Request) bool {
	if q.Object.Resource != "jobs" || q.Object.Subresource != "status" || q.Verb == "get" {
		return false
	}
	switch q.Response.Code {
	case http.StatusConflict, http.StatusNotFound, http.StatusTooManyRequests:
		return false
	default:
		return q.Response.Code >= 400 && q.Response.Code < 500
	}
}
