package workertest

import (
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/jobferry/jobferry/e2e/rig"
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
	listener, err := rig.Listen()
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
