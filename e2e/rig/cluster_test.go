package rig_test

import (
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/binaries"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
)

func TestServerReportsItsVersion(t *testing.T) {
	f := rigtest.For(t)
	version, err := f.Cluster("main").Client().Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if version.GitVersion != "v1.36.3" || version.Major != "1" || version.Minor != "36" {
		t.Errorf("the server says it is %s (%s.%s)", version, version.Major, version.Minor)
	}
}

// A killed component comes back on the same port with the same data.
func TestKilledComponentsComeBack(t *testing.T) {
	f := rigtest.For(t)
	c := f.Cluster("main")
	ns := f.Namespace(c)
	f.Create(c, rigtest.Job(ns, "before", rigtest.RunForever()))
	f.JobUntil(c, ns, "before", rigtest.Running(1))
	for _, name := range []string{binaries.APIServer, binaries.Etcd, binaries.ControllerManager, binaries.Scheduler, binaries.Kwok} {
		if err := c.Component(name).Restart(); err != nil {
			t.Fatal(err)
		}
		if err := c.Ready(f.Context()); err != nil {
			t.Fatal(err)
		}
	}
	f.JobUntil(c, ns, "before", rigtest.Running(1))
	f.Create(c, rigtest.Job(ns, "after"))
	f.JobUntil(c, ns, "after", rigtest.Complete)
}

func TestFrozenServerDoesNotAnswerUntilThawed(t *testing.T) {
	f := rigtest.For(t)
	c := f.Cluster("bare")
	server := c.Component(binaries.APIServer)
	if err := server.Freeze(); err != nil {
		t.Fatal(err)
	}
	err := readyWithin(c.RESTConfig(), 300*time.Millisecond)
	if thaw := server.Thaw(); thaw != nil {
		t.Fatal(thaw)
	}
	if err == nil {
		t.Error("a frozen server answered")
	}
	if err := c.Ready(f.Context()); err != nil {
		t.Error(err)
	}
}

// Without the built-in controller a Job is left alone, while what follows it in the same queue is
// not ours to know: its status stays empty for as long as a Job of the other cluster takes from
// start to end.
func TestClusterWithoutJobController(t *testing.T) {
	f := rigtest.For(t)
	bare, whole := f.Cluster("bare"), f.Cluster("main")
	ns := f.Namespace(bare, whole)
	f.Create(bare, rigtest.Job(ns, "job"))
	f.Create(whole, rigtest.Job(ns, "job"))
	f.JobUntil(whole, ns, "job", rigtest.Complete)
	job, err := bare.Client().BatchV1().Jobs(ns).Get(f.Context(), "job", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if job.Status.StartTime != nil {
		t.Error("somebody started the Job")
	}
}

func TestServiceAccountHasOnlyItsRights(t *testing.T) {
	f := rigtest.For(t)
	c := f.Cluster("bare")
	ns := f.Namespace(c)
	_, err := c.Client().RbacV1().RoleBindings(ns).Create(f.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "view"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: ns, Name: "default"}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := c.ServiceAccountKubeconfig(f.Context(), ns, "default")
	if err != nil {
		t.Fatal(err)
	}
	client := clientOf(t, kubeconfig)
	if _, err := client.BatchV1().Jobs(ns).List(f.Context(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := client.BatchV1().Jobs(ns).Create(f.Context(), rigtest.Job(ns, "job"), metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("creating a Job: %v, want forbidden", err)
	}
}

func TestRequestsAreCounted(t *testing.T) {
	f := rigtest.For(t)
	c := f.Cluster("main")
	ns := f.Namespace(c)
	f.Create(c, rigtest.Job(ns, "job"))
	f.JobUntil(c, ns, "job", rigtest.Complete)
	requests, err := c.Requests()
	if err != nil {
		t.Fatal(err)
	}
	counts := rig.CountBy(requests, func(r rig.Request) string {
		if r.Object.Namespace != ns || r.Object.Resource != "jobs" || r.UserAgent != "jobferry-rig" {
			return ""
		}
		return r.Verb
	})
	if counts["create"] != 1 || counts["watch"] != 1 {
		t.Errorf("our requests for Jobs were %v, want one create and one watch", counts)
	}
}

func TestBrokenNetworkToAWorker(t *testing.T) {
	f := rigtest.For(t)
	c := f.Cluster("main")
	t.Cleanup(c.Proxy().Heal)
	config := c.ProxyRESTConfig()
	if err := readyWithin(config, time.Minute); err != nil {
		t.Fatal(err)
	}
	c.Proxy().BlackHole()
	if readyWithin(config, 300*time.Millisecond) == nil {
		t.Error("an answer came out of a black hole")
	}
	c.Proxy().Heal()
	if err := readyWithin(config, time.Minute); err != nil {
		t.Error(err)
	}
	if _, err := clientOf(t, c.ProxyKubeconfigBytes()).Discovery().ServerVersion(); err != nil {
		t.Error(err)
	}
}

func TestOptionsThatMakeNoSense(t *testing.T) {
	for name, options := range map[string]rig.Options{
		"name":           {Name: "No DNS label"},
		"release":        {Release: "1.2"},
		"job controller": {JobController: "Somebody"},
		"quantity":       {Nodes: []rig.Nodes{{CPU: "many"}}},
		"flag":           {APIServerFlags: []string{"--no-such-flag"}},
	} {
		t.Run(name, func(t *testing.T) {
			if c, err := rig.Start(t.Context(), options); err == nil {
				t.Error("started", c.Stop())
			}
		})
	}
}

func clientOf(t *testing.T, kubeconfig []byte) kubernetes.Interface {
	t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// readyWithin asks a server once, over a connection of its own.
func readyWithin(config *rest.Config, limit time.Duration) error {
	config = rest.CopyConfig(config)
	config.Timeout = limit
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	_, err = client.Discovery().ServerVersion()
	return err
}
