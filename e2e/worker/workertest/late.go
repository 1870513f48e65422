package workertest

import (
	"net/http"
	"net/http/httptest"
	"sync"

	"k8s.io/client-go/rest"
)

// Late is a proxy of an API server that can be behind with the Pods of all namespaces, as a watch
// cache may be: only consistent reads show what there is. It can also lose an answer.
type Late struct {
	*proxy
	// Lost is closed when the answer is lost.
	Lost chan struct{}

	lock     sync.Mutex
	pods     []byte        // what the list is while it's behind
	caughtUp chan struct{} // nil: it isn't behind
	lose     bool
	watches  int
}

// NewLate starts a proxy that isn't behind yet.
func NewLate(cluster *rest.Config) (_ *Late, err error) {
	l := &Late{Lost: make(chan struct{})}
	l.proxy, err = newProxy(cluster, l.delay)
	return l, err
}

// FallBehind has watches of Pods bring nothing, until CatchUp. A list that need not be consistent
// gets this answer, in JSON, and there are no watch lists.
func (l *Late) FallBehind(pods []byte) {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.pods, l.caughtUp = pods, make(chan struct{})
}

// CatchUp ends FallBehind: nothing of what the watches haven't brought is lost.
func (l *Late) CatchUp() {
	l.lock.Lock()
	defer l.lock.Unlock()
	close(l.caughtUp)
	l.caughtUp = nil
}

// LoseAnswer breaks the connection instead of answering the next request to create a Pod.
func (l *Late) LoseAnswer() {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.lose = true
}

// Watches is the number of lists and watches of Pods so far, but for consistent reads.
func (l *Late) Watches() int {
	l.lock.Lock()
	defer l.lock.Unlock()
	return l.watches
}

// behind returns what the list is, and when that ends; nil: it isn't behind.
func (l *Late) behind() ([]byte, <-chan struct{}) {
	l.lock.Lock()
	defer l.lock.Unlock()
	return l.pods, l.caughtUp
}

func (l *Late) delay(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		watch := query.Has("watch")
		switch {
		case r.Method == http.MethodPost && aboutJobs.MatchString(r.URL.Path) && l.losesThis():
			next.ServeHTTP(httptest.NewRecorder(), r)
			close(l.Lost)
			panic(http.ErrAbortHandler)
		case r.URL.Path != "/api/v1/pods" || !watch && query.Get("resourceVersion") != "0":
			next.ServeHTTP(w, r)
		default:
			l.read(next, w, r)
		}
	})
}

func (l *Late) losesThis() bool {
	l.lock.Lock()
	defer l.lock.Unlock()
	loses := l.lose
	l.lose = false
	return loses
}

// read serves the list, or a watch, of an informer.
func (l *Late) read(next http.Handler, w http.ResponseWriter, r *http.Request) {
	l.lock.Lock()
	l.watches++
	l.lock.Unlock()
	pods, behind := l.behind()
	query := r.URL.Query()
	switch {
	case behind == nil, query.Has("watch") && !query.Has("sendInitialEvents"):
		next.ServeHTTP(lateWriter{w, r, l}, r)
	case query.Has("watch"):
		http.Error(w, "sendInitialEvents is forbidden", http.StatusUnprocessableEntity)
	default:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(pods) // the client may be gone
	}
}

// lateWriter holds an answer back while the proxy is behind.
type lateWriter struct {
	http.ResponseWriter
	request *http.Request
	late    *Late
}

func (w lateWriter) Write(b []byte) (int, error) {
	if _, behind := w.late.behind(); behind != nil {
		select {
		case <-behind:
		case <-w.request.Context().Done():
		}
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap is for the flushes of a watch.
func (w lateWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
