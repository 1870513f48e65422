package admission_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/e2e/checkout"
	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig/pki"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// Names of the webhook's configuration and of the Secret with its certificates.
const (
	configuration = "jobferry-dispatch"
	certificates  = "jobferry-webhook-cert"
)

// service is an old hub whose webhook leads to managers of this test.
type service struct {
	hub
	front    *front
	managers []*ferrytest.Process
	ports    []int
}

// serving installs the webhook, and starts managers.
func serving(t *testing.T, h hub, managers int, args ...string) *service {
	t.Helper()
	s := newService(t, h)
	s.start(managers, args...)
	return s
}

// newService installs the webhook, which nobody answers yet.
func newService(t *testing.T, h hub) *service {
	t.Helper()
	s := &service{hub: h, front: newFront(t)}
	t.Cleanup(s.uninstall)
	s.install()
	return s
}

// start starts managers with the rights of their ServiceAccount; one of them leads.
func (s *service) start(managers int, args ...string) {
	s.t.Helper()
	kubeconfig := s.serviceAccount()
	for range managers {
		port := freePort(s.t)
		s.ports = append(s.ports, port)
		s.managers = append(s.managers, s.StartManager(append([]string{
			"--kubeconfig=" + kubeconfig, "--leader-elect", "--admission-webhook",
			fmt.Sprintf("--admission-webhook-bind-address=127.0.0.1:%d", port), "--subresources-bind-address=0",
		}, args...)...))
	}
	for _, port := range s.ports { // a Service leads to those that are ready
		s.front.turn(port)
		s.eventually("each manager answers", func() bool { return s.claims() == nil })
	}
	s.front.turn(s.ports...)
}

// install applies what config/ has, with a Service that leads to the front.
func (s *service) install() {
	s.t.Helper()
	var files []string
	for _, file := range []string{"rbac/role.yaml", "rbac/bindings.yaml", "webhook/role.yaml", "webhook/bindings.yaml"} {
		files = append(files, "-f", checkout.Path("config", file))
	}
	s.Kubectl(s.Hub, "", append([]string{"apply", "--server-side"}, files...)...)
	s.Kubectl(s.Hub, fmt.Sprintf(`{apiVersion: v1, kind: Service, metadata: {name: jobferry-webhook}, spec: {type: ExternalName, externalName: 127.0.0.1}}
---
{apiVersion: v1, kind: Secret, metadata: {name: %s}}`, certificates), "apply", "-n", ferrytest.SystemNamespace, "-f", "-")
	s.Kubectl(s.Hub, "", "apply", "--server-side", "--force-conflicts", "-k", checkout.Path("config", "admission", "webhook"))
	s.Kubectl(s.Hub, "", "patch", "mutatingwebhookconfiguration", configuration, "--type=json",
		fmt.Sprintf(`-p=[{"op":"replace","path":"/webhooks/0/clientConfig/service/port","value":%d},
			{"op":"replace","path":"/webhooks/1/clientConfig/service/port","value":%d}]`, s.front.port, s.front.port))
}

// removeConfiguration leaves a hub without the webhook.
func (s *service) removeConfiguration() {
	// the test's own has ended
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, err := s.Hub.Kubectl(ctx, "", "delete", "mutatingwebhookconfiguration", configuration); err != nil {
		s.t.Error(err)
	}
}

// uninstall leaves the hub as it was, so that no Job of another test is refused.
func (s *service) uninstall() {
	// the test's own has ended
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, args := range [][]string{
		{"delete", "mutatingwebhookconfiguration", configuration},
		{"delete", "secret", "-n", ferrytest.SystemNamespace, certificates},
	} {
		if _, err := s.Hub.Kubectl(ctx, "", args...); err != nil {
			s.t.Error(err)
		}
	}
}

func (s *service) serviceAccount() string {
	s.t.Helper()
	kubeconfig, err := s.Hub.ServiceAccountKubeconfig(s.Context(), ferrytest.SystemNamespace, managerName)
	if err != nil {
		s.t.Fatal(err)
	}
	file := filepath.Join(s.t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, kubeconfig, 0o600); err != nil {
		s.t.Fatal(err)
	}
	return file
}

// claims has a Job created over a new connection, and says why it isn't ours.
func (s *service) claims() error {
	s.front.hangUp()
	made, err := s.Hub.Client().BatchV1().Jobs(s.NS).Create(s.Context(), rigtest.Job(s.NS, "probe"),
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err == nil && managedBy(made) != v1alpha1.ManagedByDispatcher {
		err = fmt.Errorf("managedBy is %q", managedBy(made))
	}
	return err
}

// While no manager answers, Jobs of dispatched namespaces aren't created, and nothing else is
// affected.
func TestWebhookDown(t *testing.T) {
	s := serving(t, hubFor(t, oldHub), 1)
	other := s.Namespace(s.Hub)
	s.managers[0].Kill()
	if err := s.claims(); err == nil || !strings.Contains(err.Error(), `failed calling webhook "dispatch.jobferry.dev"`) {
		t.Errorf("a Job of a dispatched namespace: error %v", err)
	}
	s.Create(s.Hub, rigtest.Job(other, "elsewhere"))
	s.Create(s.Hub, rigtest.Job(s.NS, "claimed", ours))
	s.Create(s.Hub, rigtest.Job(s.NS, "another", rigtest.ManagedBy("example.org/x")))
}

// The one that doesn't lead serves, too, with the same certificate.
func TestStandbyServes(t *testing.T) {
	s := serving(t, hubFor(t, oldHub), 2)
	for i, port := range s.ports {
		s.front.turn(port)
		s.eventually(fmt.Sprintf("manager %d answers", i), func() bool { return s.claims() == nil })
	}
	s.managers[0].Kill()
	s.front.turn(s.ports...)
	if err := s.claims(); err != nil {
		t.Error(err)
	}
	if n := len(s.generations()); n != 1 {
		t.Errorf("two managers made %d certificates", n)
	}
}

// Certificates of some seconds are exchanged several times, while each Job is asked about over a
// new connection, now to this manager, now to that one. None fails.
func TestCertificatesAreExchanged(t *testing.T) {
	s := serving(t, hubFor(t, oldHub), 2, "--admission-webhook-cert-lifetime=6s")
	seen := map[string]bool{}
	asked := 0
	for end := time.Now().Add(time.Minute); len(seen) < 4 && time.Now().Before(end); asked++ {
		s.front.turn(s.ports[asked%2], s.ports[(asked+1)%2])
		if err := s.claims(); err != nil {
			t.Fatalf("Job %d, after %d certificates: %v", asked, len(seen), err)
		}
		for entry := range s.generations() {
			seen[entry] = true
		}
	}
	if len(seen) < 4 {
		t.Errorf("%d certificates in a minute, with %d Jobs", len(seen), asked)
	}
	t.Logf("%d certificates, %d Jobs, each over a connection of its own", len(seen), asked)
}

// An admin who fears for a key empties the Secret.
func TestCertificateIsReplacedAtOnce(t *testing.T) {
	s := serving(t, hubFor(t, oldHub), 2)
	before := s.generations()
	s.Kubectl(s.Hub, "", "patch", "secret", "-n", ferrytest.SystemNamespace, certificates, "--type=json", `-p=[{"op":"remove","path":"/data"}]`)
	s.eventually("there is another certificate", func() bool { return len(s.generations()) == 1 })
	for entry := range s.generations() {
		if before[entry] != nil {
			t.Error("the old certificate came back")
		}
	}
	for _, port := range s.ports {
		s.front.turn(port)
		s.eventually("each manager serves it", func() bool { return s.claims() == nil })
	}
}

// With certificates that somebody else makes and injects, such as cert-manager, the manager reads
// files and writes nothing.
func TestCertificatesOfOthers(t *testing.T) {
	h := hubFor(t, oldHub)
	authority, err := pki.NewAuthority("issuer")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.Server(nil, "jobferry-webhook."+ferrytest.SystemNamespace+".svc")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for file, content := range map[string][]byte{"tls.crt": pair.Certificate, "tls.key": pair.Key} {
		if err := os.WriteFile(filepath.Join(dir, file), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := newService(t, h)
	s.Kubectl(s.Hub, "", "patch", "mutatingwebhookconfiguration", configuration, "--type=json",
		fmt.Sprintf(`-p=[{"op":"add","path":"/webhooks/0/clientConfig/caBundle","value":%q}]`, base64.StdEncoding.EncodeToString(authority.PEM)))
	s.start(1, "--admission-webhook-cert-dir="+dir)
	if n := len(s.generations()); n != 0 {
		t.Errorf("the manager made %d certificates", n)
	}
}

func (s *service) generations() map[string][]byte {
	s.t.Helper()
	secret, err := s.Hub.Client().CoreV1().Secrets(ferrytest.SystemNamespace).Get(s.Context(), certificates, metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return secret.Data
}
