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
	"syscall"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// proxy passes requests to an API server, with its caller's credentials.
type proxy struct {
	server *http.Server
	url    string
}

// newProxy starts a proxy of the cluster, with what meets each request first.
func newProxy(cluster *rest.Config, first func(next http.Handler) http.Handler) (*proxy, error) {
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
	p := &proxy{url: "http://" + listener.Addr().String()}
	p.server = &http.Server{Handler: first(&httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(upstream) },
		Transport:     transport,
		FlushInterval: -1,                         // watches
		ErrorLog:      log.New(io.Discard, "", 0), // a killed process leaves requests behind
	})}
	go func() { _ = p.server.Serve(listener) }() // ends with Close
	return p, nil
}

// Close ends all connections.
func (p *proxy) Close() error { return p.server.Close() }

// WriteKubeconfig writes a kubeconfig for the proxy.
func (p *proxy) WriteKubeconfig(file string) error {
	config := clientcmdapi.NewConfig()
	config.Clusters["proxy"] = &clientcmdapi.Cluster{Server: p.url}
	config.Contexts["proxy"] = &clientcmdapi.Context{Cluster: "proxy"}
	config.CurrentContext = "proxy"
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
