package audit

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/e2e/rig"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// request makes a request for an object; a resource may have a subresource after a dot.
func request(user, verb, resource, namespace, name string) rig.Request {
	r := rig.Request{Verb: verb, URI: "/some/path"}
	r.User.Username = user
	r.Object.Resource, r.Object.Namespace, r.Object.Name = resource, namespace, name
	r.Received = metav1.NewMicroTime(epoch)
	r.Response.Code = 200
	return r
}

func TestSelect(t *testing.T) {
	early := request("manager", "patch", "jobs", "flood", "early")
	early.Received = metav1.NewMicroTime(epoch.Add(-time.Second))
	requests := []rig.Request{
		early,
		request("manager", "patch", "jobs", "flood", "mine"),
		request("kcm", "patch", "jobs", "flood", "other user"),
		request("manager", "patch", "jobs", "rest", "other namespace"),
	}
	got := Select(requests, By("manager"), In("flood"), Between(epoch, epoch.Add(time.Second)))
	if len(got) != 1 || got[0].Object.Name != "mine" {
		t.Errorf("got %+v", got)
	}
	if got := Select(requests, Not(By("manager"))); len(got) != 1 || got[0].Object.Name != "other user" {
		t.Errorf("got %+v", got)
	}
	if got := Select(requests, Between(epoch.Add(-time.Second), epoch)); len(got) != 1 || got[0].Object.Name != "early" {
		t.Errorf("the end of a span belongs to it: got %+v", got)
	}
}

func TestUpkeep(t *testing.T) {
	version := rig.Request{Verb: "get", URI: "/version"}
	for name, c := range map[string]struct {
		request rig.Request
		want    bool
	}{
		"renews a Lease":                {request("m", "update", "leases", "jobferry-system", "jobferry-manager"), true},
		"asks whether a worker answers": {request("m", "get", "namespaces", "kube-system", "kube-system"), true},
		"asks for the state":            {request("m", "list", "jobs", "kube-system", "jobferry-probe"), true},
		"asks for the version":          {version, true},
		"opens a watch again":           {request("m", "watch", "jobs", "", ""), true},
		"reads another namespace":       {request("m", "get", "namespaces", "team", "team"), false},
		"reads a Job":                   {request("m", "get", "jobs", "kube-system", "kube-system"), false},
		"lists":                         {request("m", "list", "pods", "", ""), false},
		"writes a status":               {request("m", "patch", "workerclusters", "", "w"), false},
	} {
		if got := IsUpkeep(c.request); got != c.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

func TestTally(t *testing.T) {
	status := request("m", "patch", "jobs", "flood", "a")
	status.Object.Subresource = "status"
	conflict := status
	conflict.Response.Code = 409
	plain := rig.Request{Verb: "get", URI: "/version"}
	got := Tally("hub", []rig.Request{
		status, conflict, request("m", "patch", "jobs", "flood", "a"), request("m", "create", "events", "flood", "a"), plain,
	})
	want := []Count{
		{Kind{"hub", "get", "/version"}, 1, 0},
		{Kind{"hub", "create", "events"}, 1, 0},
		{Kind{"hub", "patch", "jobs"}, 1, 0},
		{Kind{"hub", "patch", "jobs/status"}, 2, 1},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if !got[1].IsEvent() || got[2].IsEvent() {
		t.Error("events are those, and nothing else")
	}
}
