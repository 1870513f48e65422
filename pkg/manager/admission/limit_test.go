package admission

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// Who sends reviews without being the hub's API server has few of them handled at the same time,
// and leaves places to others.
func TestStrangersReviewsAreBounded(t *testing.T) {
	var mu sync.Mutex
	handled, most, begun, end := map[string]int{}, 0, make(chan string, 1000), make(chan struct{})
	l := limited(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		handled[r.RemoteAddr]++
		most = max(most, handled["10.0.0.1:1"]+handled["10.0.0.1:2"])
		mu.Unlock()
		begun <- r.RemoteAddr
		<-end
		mu.Lock()
		handled[r.RemoteAddr]--
		mu.Unlock()
	}))
	var all sync.WaitGroup
	send := func(from string) {
		all.Go(func() {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, nil)
			r.RemoteAddr = from
			l.ServeHTTP(httptest.NewRecorder(), r)
		})
	}
	for range 50 {
		send("10.0.0.1:1")
		send("10.0.0.1:2")
	}
	for range maxReviews / 4 {
		<-begun
	}
	send("10.0.0.2:1")
	for from := <-begun; from != "10.0.0.2:1"; from = <-begun {
		t.Errorf("%s has more than its part", from)
	}
	close(end)
	all.Wait()
	if most > maxReviews/4 || len(l.of) > 0 {
		t.Errorf("%d of one address at the same time; %d addresses are left", most, len(l.of))
	}
}
