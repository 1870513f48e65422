package clustertest

import (
	"fmt"
	"net/http"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/util/revision"
)

// Cluster is one of them.
type Cluster struct {
	server *Server
	name   string
	store  *store

	mu       sync.Mutex
	token    string
	faults   faults
	requests map[string]int
}

// Name is the cluster's.
func (c *Cluster) Name() string { return c.name }

// Accept changes the token that is accepted.
func (c *Cluster) Accept(token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.token = token
}

// Become has another cluster answer at the same address.
func (c *Cluster) Become(uid types.UID) {
	c.Put("namespaces", namespaceNamed(metav1.NamespaceSystem, uid))
}

func namespaceNamed(name string, uid types.UID) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid}}
}

// Requests counts the requests of a kind, such as "watch jobs".
func (c *Cluster) Requests(kind string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.requests[kind]
}

// AllRequests counts the requests of all kinds.
func (c *Cluster) AllRequests() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make(map[string]int, len(c.requests))
	for kind, n := range c.requests {
		all[kind] = n
	}
	return all
}

// serve counts a request, and answers it as the faults say, or else from the store.
func (c *Cluster) serve(w http.ResponseWriter, req *http.Request, path string) {
	last := path[strings.LastIndex(path, "/")+1:]
	kind := strings.ToLower(req.Method) + " " + last
	switch {
	case isWatch(req):
		kind = "watch " + last
	case req.URL.Query().Get("fieldSelector") == revision.Selector().String():
		kind = "get revision"
	}
	c.mu.Lock()
	c.requests[kind]++
	authorized := req.Header.Get("Authorization") == "Bearer "+c.token
	fault := c.faults.of(kind, last)
	c.mu.Unlock()
	c.server.counted()
	if !fault.waits(req.Context()) {
		return
	}
	switch {
	case !authorized:
		refuse(w, apierrors.NewUnauthorized("Unauthorized"))
	case fault.answer != nil:
		fault.answer(w, req)
	case fault.refusal != nil:
		refuse(w, fault.refusal)
	case last == "version":
		fmt.Fprint(w, `{"gitVersion":"v1.36.3"}`)
	default:
		c.answer(w, req, path, fault.cut)
	}
}

func isWatch(req *http.Request) bool {
	watch := req.URL.Query().Get("watch")
	return watch == "true" || watch == "1"
}
