package pods_test

import (
	"strings"
	"testing"
	"time"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
)

// A Pod that is neither restarted nor loses readiness takes three writes: it's created, runs, and
// has ended.
func TestWrites(t *testing.T) {
	const pods = 15
	w := shown(t)
	w.runManager()
	w.Register("w1", "w2")
	w.Submit("job", rigtest.RunFor(4*time.Second), rigtest.Parallel(pods), ferrytest.OnWorker("w1"))
	w.HubJobUntil("job", rigtest.Complete)
	w.shownAs("w1", "job", succeeded)
	requests, err := w.Hub.Requests()
	if err != nil {
		t.Fatal(err)
	}
	writes := map[string]int{}
	for _, r := range requests {
		if o := r.Object; o.Resource == "pods" && o.Namespace == w.NS && strings.HasPrefix(r.UserAgent, ferrytest.UserAgent) && r.Verb != "get" {
			writes[strings.TrimSuffix(r.Verb+" "+o.Resource+"/"+o.Subresource, "/")]++
		}
	}
	if writes["create pods"] != pods || writes["patch pods/status"] > 2*pods || len(writes) != 2 {
		t.Errorf("%d Pods took %v", pods, writes)
	}
}
