// Package clustertest serves clusters in which there is nothing: as much of an API server over real
// TLS as a connection needs to come up and stay up. What a cluster with objects in it does is for
// tests against real API servers.
package clustertest

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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

// Add makes a cluster that accepts one token.
func (s *Server) Add(name string, uid types.UID, token string) *Cluster {
	c := &Cluster{
		server: s, name: name, uid: uid, token: token,
		heal: make(chan struct{}), requests: map[string]int{}, forbidden: map[string]bool{}, broken: map[string]bool{},
		answers: map[string]http.HandlerFunc{},
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

// Cluster is one of them.
type Cluster struct {
	server *Server
	name   string

	mu        sync.Mutex
	uid       types.UID
	token     string
	hanging   bool
	heal      chan struct{} // closed when hanging ends
	forbidden map[string]bool
	broken    map[string]bool
	requests  map[string]int
	answers   map[string]http.HandlerFunc
}

// Answer has the cluster answer requests of one kind, such as "get kube-system" or "watch jobs", with
// whatever a handler writes; nil: as before.
func (c *Cluster) Answer(kind string, with http.HandlerFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers[kind] = with
}

// Hang has the cluster accept requests and answer none, until Heal.
func (c *Cluster) Hang() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hanging = true
}

// Heal ends Hang; the requests that came meanwhile are answered.
func (c *Cluster) Heal() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hanging = false
	close(c.heal)
	c.heal = make(chan struct{})
}

// Accept changes the token that is accepted.
func (c *Cluster) Accept(token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.token = token
}

// Become has another cluster answer at the same address.
func (c *Cluster) Become(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.uid = uid
}

// Forbid has requests for a resource turned away, or not.
func (c *Cluster) Forbid(resource string, forbidden bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forbidden[resource] = forbidden
}

// Break has requests for a resource fail for a reason of the server's own, or not.
func (c *Cluster) Break(resource string, broken bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken[resource] = broken
}

// Requests counts the requests of a kind, such as "watch jobs".
func (c *Cluster) Requests(kind string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.requests[kind]
}

// Kubeconfig leads to the cluster.
func (c *Cluster) Kubeconfig(token string) []byte {
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{
		Server: c.server.server.URL + "/" + c.name,
		CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{
			Type: "CERTIFICATE", Bytes: c.server.server.Certificate().Raw,
		}),
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

func (c *Cluster) serve(w http.ResponseWriter, req *http.Request, path string) {
	resource := path[strings.LastIndex(path, "/")+1:]
	watch := req.URL.Query().Get("watch") == "true"
	kind := strings.ToLower(req.Method) + " " + resource
	if watch {
		kind = "watch " + resource
	}
	c.mu.Lock()
	c.requests[kind]++
	uid, token, hanging, heal := c.uid, c.token, c.hanging, c.heal
	forbidden, broken, answer := c.forbidden[resource], c.broken[resource], c.answers[kind]
	c.mu.Unlock()
	c.server.counted()
	if hanging {
		select {
		case <-heal:
		case <-req.Context().Done():
			return
		}
	}
	switch {
	case req.Header.Get("Authorization") != "Bearer "+token:
		refuse(w, http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "Unauthorized")
	case answer != nil:
		answer(w, req)
	case forbidden:
		refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, resource+" is forbidden")
	case broken:
		refuse(w, http.StatusInternalServerError, metav1.StatusReasonInternalError, resource+" is broken")
	case resource == "version":
		fmt.Fprint(w, `{"gitVersion":"v1.36.3"}`)
	case resource == "kube-system":
		send(w, fmt.Sprintf(`{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":%q}}`, uid))
	case watch:
		hold(w, req, path)
	default:
		send(w, fmt.Sprintf(`{"kind":"%sList","apiVersion":%q,"metadata":{"resourceVersion":"1"},"items":[]}`, kinds[resource], version(path)))
	}
}

var kinds = map[string]string{
	"jobs": "Job", "nodes": "Node", "pods": "Pod", "limitranges": "LimitRange", "resourcequotas": "ResourceQuota",
	"priorityclasses": "PriorityClass", "runtimeclasses": "RuntimeClass", "deviceclasses": "DeviceClass",
	"resourceslices": "ResourceSlice", "resourceclaims": "ResourceClaim", "resourceclaimtemplates": "ResourceClaimTemplate",
}

// version of a path such as api/v1/pods or apis/batch/v1/jobs.
func version(path string) string {
	parts := strings.Split(path, "/")
	if parts[0] == "api" {
		return parts[1]
	}
	return parts[1] + "/" + parts[2]
}

// hold keeps a watch open, in which nothing happens.
func hold(w http.ResponseWriter, req *http.Request, path string) {
	w.Header().Set("Content-Type", "application/json")
	resource := path[strings.LastIndex(path, "/")+1:]
	if req.URL.Query().Get("sendInitialEvents") == "true" {
		fmt.Fprintf(w, `{"type":"BOOKMARK","object":{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"1","annotations":{%q:"true"}}}}`+"\n",
			kinds[resource], version(path), metav1.InitialEventsAnnotationKey)
	}
	_ = http.NewResponseController(w).Flush() // fails with the connection, as the next line notices
	<-req.Context().Done()
}

func send(w http.ResponseWriter, object string) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, object)
}

func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{ // fails with the connection only
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Reason: reason, Message: message, Code: int32(code), //nolint:gosec // three digits
	})
}
