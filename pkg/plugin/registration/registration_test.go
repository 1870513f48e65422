package registration

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/clusters"
	"github.com/jobferry/jobferry/pkg/util/boundtoken"
)

var update = flag.Bool("update", false, "write the golden files anew")

const hub = "1a2b3c4d-0000-4000-8000-000000000000"

func request(edits ...func(*Request)) Request {
	r := Request{
		Name: "west", HubUID: hub, Namespace: "jobferry-system", AllNamespaces: true,
		PodAccess: []string{"logs", "exec"}, Labels: map[string]string{"region": "eu"},
	}
	for _, edit := range edits {
		edit(&r)
	}
	return r
}

func endpoint() Endpoint {
	return Endpoint{Server: "https://10.1.0.5:6443", CA: []byte("CA"), TLSServerName: "west"}
}

// What is applied, and printed, for some registrations.
func TestManifests(t *testing.T) {
	for name, r := range map[string]Request{
		"default": request(),
		"everything": request(func(r *Request) {
			r.Spec.JobController, r.Spec.Carry = v1alpha1.JobControllerEmbedded, []v1alpha1.CarriedKind{v1alpha1.CarrySecrets}
			r.TokenDuration = 720 * time.Hour
		}),
		"namespaces": request(func(r *Request) {
			no := false
			r.AllNamespaces, r.Namespaces, r.Spec.CreateNamespaces = false, []string{"team-a", "team-b"}, &no
		}),
		"least": request(func(r *Request) {
			no := false
			r.Spec.CreateNamespaces, r.Spec.Capacity, r.PodAccess = &no, v1alpha1.CapacityUnlimited, nil
		}),
	} {
		t.Run(name, func(t *testing.T) {
			kubeconfig, err := endpoint().Kubeconfig("west", "token")
			if err != nil {
				t.Fatal(err)
			}
			text := printed(t, "worker", r.Worker()) + printed(t, "hub", []client.Object{r.WorkerCluster(), r.Secret(kubeconfig)})
			golden(t, name, text)
		})
	}
}

func printed(t *testing.T, title string, objects []client.Object) string {
	t.Helper()
	scheme := runtime.NewScheme()
	utilruntime.Must(clientscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	var manifests []*unstructured.Unstructured
	for _, object := range objects {
		m, err := Manifest(object, scheme)
		if err != nil {
			t.Fatal(err)
		}
		manifests = append(manifests, m)
	}
	text, err := YAML(title, manifests)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden.yaml")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got; -update writes it):\n%s", file, diff)
	}
}

// The manager takes the kubeconfig, with the old token and with a new one.
func TestKubeconfig(t *testing.T) {
	e := endpoint()
	e.CA = nil // a real one isn't needed to see whether it's taken
	content, err := e.Kubeconfig("west", "first")
	if err != nil {
		t.Fatal(err)
	}
	rotated, err := boundtoken.Replace(content, "second")
	if err != nil {
		t.Fatal(err)
	}
	for token, content := range map[string][]byte{"first": content, "second": rotated} {
		config, err := clusters.ParseKubeconfig(content)
		if err != nil {
			t.Fatal(err)
		}
		if config.BearerToken != token || config.Host != e.Server || config.ServerName != "west" {
			t.Errorf("%+v", config)
		}
	}
	if _, err := boundtoken.Replace([]byte("rubbish: ["), "x"); err == nil {
		t.Error("rubbish is taken for a kubeconfig")
	}
	if _, err := boundtoken.Replace([]byte("{}"), "x"); err == nil || !strings.Contains(err.Error(), "context") {
		t.Errorf("a kubeconfig without a context: %v", err)
	}
}

func TestEndpointOf(t *testing.T) {
	for name, test := range map[string]struct {
		cluster         clientcmdapi.Cluster
		context, server string
		wantServer      string
		wantErr         string
	}{
		"the context's":    {clientcmdapi.Cluster{Server: "https://a:6443"}, "west", "", "https://a:6443", ""},
		"another address":  {clientcmdapi.Cluster{Server: "https://a:6443"}, "west", "https://b", "https://b", ""},
		"no such context":  {clientcmdapi.Cluster{}, "east", "", "", `no context "east"`},
		"insecure":         {clientcmdapi.Cluster{Server: "https://a", InsecureSkipTLSVerify: true}, "west", "", "", "certificate-authority-data"},
		"in the clear":     {clientcmdapi.Cluster{Server: "http://a"}, "west", "", "", "https://worker.example.com:6443"},
		"no address":       {clientcmdapi.Cluster{}, "west", "", "", "--server"},
		"a name is no URL": {clientcmdapi.Cluster{Server: "https://a"}, "west", "b:6443", "", "--server"},
	} {
		t.Run(name, func(t *testing.T) {
			config := &clientcmdapi.Config{
				Contexts: map[string]*clientcmdapi.Context{"west": {Cluster: "c"}},
				Clusters: map[string]*clientcmdapi.Cluster{"c": &test.cluster},
			}
			got, err := EndpointOf(config, test.context, test.server)
			switch {
			case test.wantErr != "":
				if err == nil || !strings.Contains(err.Error(), test.wantErr) {
					t.Errorf("error %v, want %q", err, test.wantErr)
				}
			case err != nil || got.Server != test.wantServer:
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

func TestLoopback(t *testing.T) {
	for server, want := range map[string]bool{
		"https://127.0.0.1:6443": true, "https://localhost:6443": true, "https://[::1]:1": true, "https://0.0.0.0": true,
		"https://10.0.0.1": false, "https://worker.example.com": false,
	} {
		if got := (Endpoint{Server: server}).Loopback(); got != want {
			t.Errorf("%s: %t", server, got)
		}
	}
}

// A long-lived token has a Secret, a bound one has none. While one account takes the place of
// another, both have the rights.
func TestAccounts(t *testing.T) {
	find := func(r Request, kind string) (names []string) {
		for _, o := range r.Worker() {
			switch o := o.(type) {
			case *corev1.Secret:
				if kind == "Secret" {
					names = append(names, o.Name+" of "+o.Annotations[corev1.ServiceAccountNameKey])
				}
			case *corev1.ServiceAccount:
				if kind == "ServiceAccount" {
					names = append(names, o.Name)
				}
			case *rbacv1.ClusterRoleBinding:
				if kind == "subject" {
					for _, s := range o.Subjects {
						names = append(names, s.Name)
					}
				}
			}
		}
		return names
	}
	longLived := request()
	bound := request(func(r *Request) { r.TokenDuration = time.Hour })
	rotated := request(func(r *Request) { r.Account, r.FormerAccount = "jobferry-hub-1a2b3c4d-x7k2p", "jobferry-hub-1a2b3c4d" })
	for _, row := range []struct {
		request    Request
		kind, want string
	}{
		{longLived, "Secret", "[jobferry-hub-1a2b3c4d of jobferry-hub-1a2b3c4d]"},
		{bound, "Secret", "[]"},
		{bound, "ServiceAccount", "[jobferry-hub-1a2b3c4d]"},
		{rotated, "ServiceAccount", "[jobferry-hub-1a2b3c4d-x7k2p]"},
		{rotated, "Secret", "[jobferry-hub-1a2b3c4d-x7k2p of jobferry-hub-1a2b3c4d-x7k2p]"},
		{rotated, "subject", "[jobferry-hub-1a2b3c4d-x7k2p jobferry-hub-1a2b3c4d]"},
		{bound, "subject", "[jobferry-hub-1a2b3c4d]"},
	} {
		if got := fmt.Sprint(find(row.request, row.kind)); got != row.want {
			t.Errorf("%s: %s, want %s", row.kind, got, row.want)
		}
	}
}

// Roles are only where the hub may have Jobs, and where its Leases are.
func TestHasRole(t *testing.T) {
	limited := request(func(r *Request) { r.AllNamespaces, r.Namespaces = false, []string{"a", "b"} })
	for _, row := range []struct {
		request Request
		in      string
		want    bool
	}{
		{limited, "a", true}, {limited, "b", true}, {limited, "c", false}, {limited, v1alpha1.SystemNamespace, true},
		{request(), "a", false}, {request(), v1alpha1.SystemNamespace, true},
	} {
		if got := row.request.HasRole(row.in); got != row.want {
			t.Errorf("%v in %s: %t", row.request.Namespaces, row.in, got)
		}
	}
}
