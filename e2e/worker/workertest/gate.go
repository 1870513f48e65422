package workertest

import (
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"regexp"
	"sync"
	"syscall"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Gate is a proxy of an API server that passes a number of writes about Jobs and Pods, and then
// none: so a test can kill its client between two writes.
type Gate struct {
	server *http.Server
	url    string
	// Closed is closed when a write meets the closed gate.
	Closed chan struct{}

	lock   sync.Mutex
	passed int
	left   int // -1: without limit
	once   sync.Once
}

// NewGate opens a gate to the cluster for that many writes, -1 for any number.
func NewGate(cluster *rest.Config, writes int) (*Gate, error) {
	transport, err := rest.TransportFor(cluster)
	if err != nil {
		return nil, err
	}
	upstream, err := url.Parse(cluster.Host)
	if err != nil {
		return nil, err
	}
	listener, err := listen()
	if err != nil {
		return nil, err
	}
	g := &Gate{url: "http://" + listener.Addr().String(), left: writes, Closed: make(chan struct{})}
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(upstream) },
		Transport:     transport,
		FlushInterval: -1,                         // watches
		ErrorLog:      log.New(io.Discard, "", 0), // a killed process leaves requests behind
	}
	g.server = &http.Server{Handler: g.guard(proxy)}
	go func() { _ = g.server.Serve(listener) }() // ends with Close
	return g, nil
}

// Close ends all connections.
func (g *Gate) Close() error { return g.server.Close() }

// Passed is the number of writes that have passed.
func (g *Gate) Passed() int {
	g.lock.Lock()
	defer g.lock.Unlock()
	return g.passed
}

// aboutJobs are the paths of what counts: Jobs, Pods and their status, but not events.
var aboutJobs = regexp.MustCompile(`^/(api/v1|apis/batch/v1)/namespaces/[^/]+/(pods|jobs)(/|$)`)

// guard passes one write at a time, so that none is under way when the gate closes.
func (g *Gate) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet || !aboutJobs.MatchString(r.URL.Path) {
			next.ServeHTTP(w, r)
			return
		}
		g.lock.Lock()
		defer g.lock.Unlock()
		if g.left == 0 {
			g.once.Do(func() { close(g.Closed) })
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		g.left--
		g.passed++
		next.ServeHTTP(w, r)
	})
}

// WriteKubeconfig writes a kubeconfig for the gate.
func (g *Gate) WriteKubeconfig(file string) error {
	config := clientcmdapi.NewConfig()
	config.Clusters["gate"] = &clientcmdapi.Cluster{Server: g.url}
	config.Contexts["gate"] = &clientcmdapi.Context{Cluster: "gate"}
	config.CurrentContext = "gate"
	return clientcmd.WriteToFile(*config, file)
}

// FreeAddress returns an unused address on loopback.
func FreeAddress() (string, error) {
	listener, err := listen()
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

// listen takes a port that no outgoing connection can have taken.
func listen() (net.Listener, error) {
	for range 100 {
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(12000)))
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		return listener, err
	}
	return nil, errors.New("no free port found")
}
