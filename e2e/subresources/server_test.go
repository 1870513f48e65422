package subresources_test

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig/pki"
	"github.com/jobferry/jobferry/pkg/manager"
	"github.com/jobferry/jobferry/pkg/manager/subresources"
)

const (
	service     = "jobferry-subresources"
	managerUser = "jobferry-subresources-server"
)

// permissions of the server on the hub, as the markers in its package have them, and those of an
// aggregated API server.
const permissions = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: subresources-server}
rules:
- {apiGroups: [batch], resources: [jobs], verbs: [get, list, watch]}
- {apiGroups: [""], resources: [events], verbs: [list, watch]}
- {apiGroups: [jobferry.dev], resources: [workerclusters], verbs: [get]}
- {apiGroups: [""], resources: [namespaces], resourceNames: [kube-system], verbs: [get]}
- {apiGroups: [authorization.k8s.io], resources: [subjectaccessreviews], verbs: [create]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: subresources-server}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: subresources-server}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %[1]s}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: subresources-server, namespace: jobferry-system}
rules:
- {apiGroups: [""], resources: [secrets], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: subresources-server, namespace: jobferry-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: subresources-server}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %[1]s}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: subresources-server, namespace: kube-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: extension-apiserver-authentication-reader}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %[1]s}]
`

// aggregation has the hub's API server proxy requests. Without a kube-proxy, a Service's own
// address isn't reachable, so the API server connects to one with an external name.
const aggregation = `
apiVersion: v1
kind: Service
metadata: {name: jobferry-subresources, namespace: jobferry-system}
spec: {type: ExternalName, externalName: 127.0.0.1}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1alpha1.subresources.jobferry.dev}
spec:
  group: subresources.jobferry.dev
  version: v1alpha1
  groupPriorityMinimum: 1000
  versionPriority: 15
  service: {name: jobferry-subresources, namespace: jobferry-system, port: %d}
%s`

// server is the aggregated API in this process.
type server struct {
	t       *testing.T
	address string
	metrics *prometheus.Registry
	stop    func()
}

// serve starts the API, registers it, and waits until the hub's API server finds it available.
func serve(f *ferrytest.Ferry, t *testing.T, edits ...func(*subresources.Options)) *server {
	t.Helper()
	listener := listen(t)
	authority, certificate := newCertificate(t)
	f.Apply(f.Hub, "", fmt.Sprintf(permissions, managerUser))
	s := &server{t: t, address: listener.Addr().String(), metrics: prometheus.NewRegistry()}
	options := subresources.Options{
		Listener: listener, Namespace: ferrytest.SystemNamespace, Metrics: s.metrics,
		Certificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &certificate, nil },
	}
	for _, edit := range edits {
		edit(&options)
	}
	s.run(f, options)
	register(f, t, listener.Addr(), authority.PEM)
	return s
}

func (s *server) run(f *ferrytest.Ferry, options subresources.Options) {
	s.t.Helper()
	kubeconfig, err := f.Hub.UserKubeconfigBytes(managerUser)
	s.check(err)
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	s.check(err)
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: manager.NewScheme(), Metrics: metricsserver.Options{BindAddress: "0"}, Logger: logr.Discard(),
	})
	s.check(err)
	ctx, cancel := context.WithCancel(context.Background()) // the test's own ends before its cleanups
	s.check(subresources.Setup(ctx, mgr, options))
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	s.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			s.t.Errorf("the server ended with %v", err)
		}
	})
	s.t.Cleanup(s.stop)
}

func (s *server) check(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func register(f *ferrytest.Ferry, t *testing.T, address net.Addr, authority []byte) {
	t.Helper()
	_, port, err := net.SplitHostPort(address.String())
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	// A new object: the status of a former one would be that of another server.
	f.Kubectl(f.Hub, "", "delete", "apiservice", "v1alpha1.subresources.jobferry.dev", "--ignore-not-found")
	bundle := "" // the program fills it in
	if authority != nil {
		bundle = "  caBundle: " + base64.StdEncoding.EncodeToString(authority) + "\n"
	}
	f.Apply(f.Hub, "", fmt.Sprintf(aggregation, number, bundle))
	f.Kubectl(f.Hub, "", "wait", "--for=condition=Available", "apiservice/v1alpha1.subresources.jobferry.dev", "--timeout=60s")
}

func newCertificate(t *testing.T) (*pki.Authority, tls.Certificate) {
	t.Helper()
	authority, err := pki.NewAuthority("subresources-ca")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.Server(nil, service+"."+ferrytest.SystemNamespace+".svc")
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	return authority, certificate
}

// listen takes a port below the range of outgoing connections.
func listen(t *testing.T) net.Listener {
	t.Helper()
	var err error
	for range 100 {
		var l net.Listener
		if l, err = net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(12000))); err == nil {
			return l
		}
	}
	t.Fatal(err)
	return nil
}
