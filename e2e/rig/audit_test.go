package rig

import (
	"strings"
	"testing"
)

// A server that is killed while it writes leaves a part of a line, which the next one writes
// behind.
func TestRequestsOfAKilledServer(t *testing.T) {
	const first = `{"kind":"Event","verb":"create","user":{"username":"a","groups":["system:masters","b"]},"requestURI":"/1?x={\"kind\":\"Event\"}"}`
	const second = `{"kind":"Event","verb":"get","requestURI":"/2"}`
	for cut := range len(first) {
		log := first + "\n" + first[:cut] + second + "\n" + second
		requests, err := parseRequests(strings.NewReader(log))
		if err != nil {
			t.Fatalf("cut after %s: %v", first[:cut], err)
		}
		if len(requests) != 2 || requests[0].Verb != "create" || requests[1].URI != "/2" {
			t.Errorf("cut after %s: read %+v", first[:cut], requests)
		}
	}
	if _, err := parseRequests(strings.NewReader("x\n")); err == nil {
		t.Error("a line that is no event was passed over")
	}
}
