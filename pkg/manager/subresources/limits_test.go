package subresources

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestLimiter(t *testing.T) {
	l := newLimiter("things", 2, 13)
	first, err := l.acquire("a", "x")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ user, holder, want string }{
		{"a", "y", ""},
		{"a", "x", `user "a" has 2 things open here, which is the limit for a user`},
		{"b", "x", ""},
		{"c", "x", ""}, // x has 3 now, and 9 are free
		{"d", "x", `x has 3 things open here, and 9 of 13 places are free, of which one may have a quarter`},
		{"d", "y", ""}, // 8 are free
		{"d", "y", `y has 2 things open here, and 8 of 13 places are free`},
		{"d", "z", ""},
	} {
		if _, err := l.acquire(row.user, row.holder); (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s in %s: %v, want %q", row.user, row.holder, err, row.want)
		}
	}
	first()
	first() // counts once
	if l.held.Free() != 8 || l.users["a"] != 1 || l.held.Of("x") != 2 {
		t.Errorf("%d are free, of users %v", l.held.Free(), l.users)
	}
}

// Holders that take all they can get leave room for the next one.
func TestHoldersThatTakeAllLeaveRoom(t *testing.T) {
	l := newLimiter("things", 0, 1000)
	for holder := range 26 {
		took := 0
		for {
			if _, err := l.acquire("user", fmt.Sprint(holder)); err != nil {
				break
			}
			took++
		}
		if took == 0 || took > 200 {
			t.Errorf("holder %d has %d of 1000 places", holder, took)
		}
	}
}

// A refused client is told when to try again.
func TestRefusedByALimitSaysWhen(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Requests = 1 })
	begun, goOn := make(chan struct{}), make(chan struct{})
	w.worker.on(podsPath, func(out http.ResponseWriter, _ *http.Request) {
		close(begun)
		<-goOn
		writeJSON(out, http.StatusOK, corev1.PodList{})
	})
	ended := make(chan struct{})
	go func() { defer close(ended); _, _ = w.get("pods") }()
	<-begun
	w.refused("mirror", http.StatusTooManyRequests, `namespace "team" has 1 requests open here, and 0 of 1 places are free`)
	if got, err := w.get("mirror"); err != nil || got.header.Get("Retry-After") != "1" {
		t.Errorf("%v, %v", got.header, err)
	}
	close(goOn)
	<-ended
	if got, err := w.get("mirror"); err != nil || got.code != http.StatusOK {
		t.Errorf("%+v, %v", got, err)
	}
}
