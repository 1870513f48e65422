package admission

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
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
	if most > maxReviews/4 || l.addresses() > 0 {
		t.Errorf("%d of one address at the same time; %d addresses are left", most, l.addresses())
	}
}

// Of large reviews, which take much memory, one is handled at a time. Small ones don't wait for it.
func TestOneLargeReviewAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var small, large atomic.Int32
		end := make(chan struct{})
		l := limited(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r.ContentLength == 0 {
				small.Add(1)
				return
			}
			large.Add(1)
			<-end
		}))
		send := func(from int, length int64) {
			go func() {
				r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, nil)
				r.RemoteAddr, r.ContentLength = fmt.Sprintf("10.0.0.%d:1", from), length
				l.ServeHTTP(httptest.NewRecorder(), r)
			}()
		}
		for i := range 10 {
			send(i, maxSmallReview+1)
			send(i, -1)
		}
		synctest.Wait()
		send(1, 0)
		synctest.Wait()
		if large.Load() != 1 || small.Load() != 1 {
			t.Errorf("%d large and %d small ones", large.Load(), small.Load())
		}
		close(end)
		synctest.Wait()
		if large.Load() != 20 || l.addresses() > 0 {
			t.Errorf("%d large ones were handled; %d addresses are left", large.Load(), l.addresses())
		}
	})
}

// addresses are those that are remembered.
func (l *limiter) addresses() int { return l.small.Holders() + l.large.Holders() }
