package clustertest

import (
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Server serves many clusters at one address, each below a path of its own.
type Server struct {
	server  *httptest.Server
	counted func()

	mu       sync.Mutex
	clusters map[string]*Cluster
}

// NewServer starts a server for TLS and HTTP/2, and calls counted after it counts a request.
func NewServer(counted func()) *Server {
	s := &Server{clusters: map[string]*Cluster{}, counted: counted}
	s.server = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.server.EnableHTTP2 = true
	s.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.server.StartTLS()
	return s
}

// Close ends all connections and the server.
func (s *Server) Close() {
	s.server.CloseClientConnections()
	s.server.Close()
}

// Cut ends all connections, as a restart does.
func (s *Server) Cut() { s.server.CloseClientConnections() }

// Add makes a cluster that accepts one token, with the namespaces that each cluster has.
func (s *Server) Add(name string, uid types.UID, token string) *Cluster {
	c := &Cluster{server: s, name: name, token: token, faults: newFaults(), store: newStore(), requests: map[string]int{}}
	c.Become(uid)
	for _, system := range []string{metav1.NamespaceDefault, "kube-node-lease", metav1.NamespacePublic} {
		c.Put("namespaces", namespaceNamed(system, types.UID(system)))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clusters[name] = c
	return c
}

func (s *Server) serve(w http.ResponseWriter, req *http.Request) {
	name, path, _ := strings.Cut(strings.TrimPrefix(req.URL.Path, "/"), "/")
	s.mu.Lock()
	c := s.clusters[name]
	s.mu.Unlock()
	if c == nil {
		http.NotFound(w, req)
		return
	}
	c.serve(w, req, path)
}

// Kubeconfig leads to the cluster.
func (c *Cluster) Kubeconfig(token string) []byte {
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{
		Server: c.server.server.URL + "/" + c.name, CertificateAuthorityData: c.server.certificate(),
	}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	raw, err := clientcmd.Write(*config)
	if err != nil {
		panic(err) // it was made above
	}
	return raw
}

// RESTConfig is for clients of the cluster.
func (c *Cluster) RESTConfig() *rest.Config {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &rest.Config{
		Host: c.server.server.URL + "/" + c.name, BearerToken: c.token, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: c.server.certificate()},
	}
}

func (s *Server) certificate() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.server.Certificate().Raw})
}
