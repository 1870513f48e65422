package subresources_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/manager/subresources"
)

// A tenant opens all the streams that its namespace can get, by many users. Another namespace
// notices nothing, and somebody without rights takes no place.
func TestATenantLeavesStreamsToOthers(t *testing.T) {
	f, tenant := ferrytest.For(t), ferrytest.For(t)
	f.RunManager()
	f.Register("w1")
	serve(f, t, func(o *subresources.Options) { o.Streams, o.StreamsPerUser = 10, 1 })
	for _, of := range []*ferrytest.Ferry{f, tenant} {
		of.Submit("job", ferrytest.OnWorker("w1"), rigtest.RunForever())
		of.LeaveWorker("w1")
		of.HubJobUntil("job", rigtest.Running(1))
	}
	modest := login(f, t, "modest").grant(f, f.NS, "get: jobs/log")
	modest.must(f.Context(), f.NS, "job", "log")

	login(f, t, "greedy-1").grant(f, tenant.NS, "get: jobs/log").follow(f.Context(), tenant.NS, "job")
	login(f, t, "greedy-2").grant(f, tenant.NS, "get: jobs/log").follow(f.Context(), tenant.NS, "job")
	login(f, t, "greedy-3").grant(f, tenant.NS, "get: jobs/log").refused(f.Context(), http.StatusTooManyRequests,
		fmt.Sprintf("namespace %q has 2 streams open here, and 8 of 10 places are free", tenant.NS), tenant.NS, "job", "log")
	modest.must(f.Context(), f.NS, "job", "log")

	// This user passes the hub's API server, whose word for a WebSocket is get, but not the manager.
	stranger := login(f, t, "stranger").grant(f, f.NS, "get: jobs/exec")
	ended := make(chan error, 10)
	for range cap(ended) {
		go func() { ended <- stranger.exec(f.Context(), nil, nil, f.NS, "job", "command=true") }()
	}
	modest.must(f.Context(), f.NS, "job", "log")
	for range cap(ended) {
		stranger.cut(<-ended, "verb create on jobs/exec")
	}
}
