package chaos

import (
	"testing"

	"github.com/jobferry/jobferry/e2e/rig"
)

func TestIsRejectedStatus(t *testing.T) {
	request := func(verb, resource, subresource string, code int) (q rig.Request) {
		q.Verb, q.Object.Resource, q.Object.Subresource, q.Response.Code = verb, resource, subresource, code
		return q
	}
	for code, want := range map[int]bool{200: false, 400: true, 403: true, 404: false, 409: false, 422: true, 429: false, 500: false} {
		if got := isRejectedStatus(request("patch", "jobs", "status", code)); got != want {
			t.Errorf("%d: %t", code, got)
		}
	}
	for _, q := range []rig.Request{request("patch", "jobs", "", 422), request("patch", "pods", "status", 422), request("get", "jobs", "status", 403)} {
		if isRejectedStatus(q) {
			t.Errorf("%+v is about no status", q)
		}
	}
}
