package dispatch_test

import (
	"bytes"
	"fmt"
	"net"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// A Secret that leads nowhere is named, with the reason, and harms nobody else.
func TestBadRegistrationSecrets(t *testing.T) {
	f := ferrytest.For(t)
	m := f.RunManager()
	f.Register("w1")
	for name, bad := range map[string]struct {
		data           map[string][]byte
		reason, detail string
	}{
		"no-kubeconfig": {map[string][]byte{"config": []byte("x")}, v1alpha1.ReasonKubeconfigMissing, `no key "kubeconfig"`},
		"rubbish":       {secret("\x00 rubbish: ["), v1alpha1.ReasonKubeconfigInvalid, ""},
		"empty":         {secret(""), v1alpha1.ReasonKubeconfigMissing, "empty"},
		"closed-port":   {secret(redirected(t, f, closedPort(t))), v1alpha1.ReasonUnreachable, "refused"},
		"black-hole":    {secret(redirected(t, f, silentPort(t))), v1alpha1.ReasonUnreachable, "no answer in time"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := ferrytest.For(t)
			f.RegisterSecret(name, bad.data, nil)
			f.WorkerUntil(name, ferrytest.NotReady(bad.reason))
			f.EventOn("default", name, bad.reason, bad.detail) // where events on cluster-scoped objects are
			f.EventOn(ferrytest.SystemNamespace, name, bad.reason, bad.detail)
			if m.Metric("jobferry_worker_state", "worker", name, "reason", bad.reason) != 1 {
				t.Errorf("no metric jobferry_worker_state of %s with reason %s", name, bad.reason)
			}
			f.Submit("job")
			f.LeaveWorker("w1")
			f.HubJobUntil("job", rigtest.Complete)
			f.Unregister(name)
			f.WorkerGone(name)
			f.SecretGone(name)
		})
	}
}

func secret(kubeconfig string) map[string][]byte {
	return map[string][]byte{v1alpha1.KubeconfigKey: []byte(kubeconfig)}
}

// redirected is a good kubeconfig that leads to an address.
func redirected(t *testing.T, f *ferrytest.Ferry, address string) string {
	config, err := clientcmd.Load(bytes.Clone(f.Cluster("w2").KubeconfigBytes()))
	if err != nil {
		t.Fatal(err)
	}
	for _, cluster := range config.Clusters {
		cluster.Server = "https://" + address
	}
	content, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// closedPort is an address that nothing listens at: it belongs to one end of a connection.
func closedPort(t *testing.T) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(); listener.Close() })
	return conn.LocalAddr().String()
}

// silentPort is the address of a server that accepts and never answers.
func silentPort(t *testing.T) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return listener.Addr().String() // the kernel accepts on our behalf
}

func TestCommandLineMistakesEndWithOneClearLine(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"unknown flag":       {[]string{"--no-such-flag"}, "--no-such-flag"},
		"missing kubeconfig": {nil, "--kubeconfig"},
		"no such file":       {[]string{"--kubeconfig=/does/not/exist"}, "/does/not/exist"},
		"argument":           {[]string{"hub"}, `"hub"`},
		"bad concurrency":    {[]string{"--concurrency=0"}, "concurrency"},
		"no such hub":        {[]string{"--kubeconfig=" + kubeconfigOfNoHub(t)}, "127.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stderr, code := ferrytest.Exit(t.Context(), t, tc.args...)
			if code == 0 {
				t.Error("exit code 0")
			}
			if lines := strings.Split(strings.TrimSpace(stderr), "\n"); len(lines) != 1 || !strings.Contains(stderr, tc.want) {
				t.Errorf("want one line with %s, got:\n%s", tc.want, stderr)
			}
		})
	}
}

func kubeconfigOfNoHub(t *testing.T) string {
	file := t.TempDir() + "/kubeconfig"
	config, err := clientcmd.Load(fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Config","current-context":"hub",
		"clusters":[{"name":"hub","cluster":{"server":"https://%s"}}],"contexts":[{"name":"hub","context":{"cluster":"hub"}}]}`, closedPort(t)))
	if err != nil {
		t.Fatal(err)
	}
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
}
