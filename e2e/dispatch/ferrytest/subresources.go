package ferrytest

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/jobferry/jobferry/e2e/checkout"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/pkg/manager"
	"github.com/jobferry/jobferry/pkg/manager/subresources"
)

// SubresourcesService is the Service of the aggregated API, in SystemNamespace.
const SubresourcesService = "jobferry-subresources"

const apiService = "v1alpha1.subresources.jobferry.dev"

// aggregation has the hub's API server pass requests on. Without a kube-proxy a Service's own
// address leads nowhere: one with an external name is what the API server connects to itself.
const aggregation = `
apiVersion: v1
kind: Service
metadata: {name: ` + SubresourcesService + `, namespace: ` + SystemNamespace + `}
spec: {type: ExternalName, externalName: 127.0.0.1}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: ` + apiService + `}
spec:
  group: subresources.jobferry.dev
  version: v1alpha1
  groupPriorityMinimum: 1000
  versionPriority: 15
  service: {name: ` + SubresourcesService + `, namespace: ` + SystemNamespace + `, port: %s}
%s`

// RegisterAPI has the hub pass requests for the aggregated API on to an address, and waits until it
// does. Without an authority, the program there puts its own into the APIService.
func (f *Ferry) RegisterAPI(address string, authority []byte) {
	f.t.Helper()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		f.t.Fatal(err)
	}
	// A new object: the status of a former one would be that of another server.
	f.Kubectl(f.Hub, "", "delete", "apiservice", apiService, "--ignore-not-found")
	bundle := ""
	if authority != nil {
		bundle = "  caBundle: " + base64.StdEncoding.EncodeToString(authority) + "\n"
	}
	f.Apply(f.Hub, "", fmt.Sprintf(aggregation, port, bundle))
	f.Kubectl(f.Hub, "", "wait", "--for=condition=Available", "apiservice/"+apiService, "--timeout=60s")
}

// StartManagerWithAPI starts jobferry-manager as a process that serves the aggregated API, too, and
// waits until the hub passes requests on to it.
func (f *Ferry) StartManagerWithAPI(args ...string) *Process {
	f.t.Helper()
	address := f.FreeAddress()
	p := f.StartManager(append(args, "--subresources-bind-address="+address)...)
	f.RegisterAPI(address, nil)
	return p
}

// Listen takes a free port on loopback.
func (f *Ferry) Listen() net.Listener {
	f.t.Helper()
	l, err := rig.Listen()
	if err != nil {
		f.t.Fatal(err)
	}
	return l
}

// FreeAddress is one on loopback, for a process.
func (f *Ferry) FreeAddress() string {
	f.t.Helper()
	address, err := rig.FreeAddress()
	if err != nil {
		f.t.Fatal(err)
	}
	return address
}

// UserConfig is the configuration of a user of the hub. Rights come from what a test applies.
func (f *Ferry) UserConfig(name string, groups ...string) *rest.Config {
	f.t.Helper()
	config, err := f.Hub.UserRESTConfig(name, groups...)
	if err != nil {
		f.t.Fatal(err)
	}
	return config
}

// serverBindings give a user the rights of a part, whose roles config has.
const serverBindings = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: jobferry-%[2]s}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %[1]s}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: %[1]s, namespace: ` + SystemNamespace + `}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: jobferry-%[2]s}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %[1]s}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: %[1]s, namespace: kube-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: extension-apiserver-authentication-reader}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %[1]s}]
`

// RunSubresources runs servers of subresources in this process, as a replica that doesn't lead has
// them, until the test ends or stop is called. On the hub they are a user with the rights of one
// part of config: subresources, or pods.
func (f *Ferry) RunSubresources(part string, options subresources.Options) (stop func()) {
	f.t.Helper()
	roles, err := os.ReadFile(checkout.Path("config", part, "role.yaml"))
	if err != nil {
		f.t.Fatal(err)
	}
	user := "jobferry-" + part + "-server"
	f.Apply(f.Hub, "", string(roles)+"---"+fmt.Sprintf(serverBindings, user, part))
	mgr, err := ctrl.NewManager(f.UserConfig(user), ctrl.Options{
		Scheme: manager.NewScheme(), Metrics: metricsserver.Options{BindAddress: "0"}, Logger: logr.Discard(),
	})
	if err != nil {
		f.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background()) // the test's own ends before its cleanups
	options.Namespace = SystemNamespace
	if err := subresources.Setup(ctx, mgr, options); err != nil {
		cancel()
		f.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			f.t.Errorf("the server of subresources ended with %v", err)
		}
	})
	f.t.Cleanup(stop)
	return stop
}
