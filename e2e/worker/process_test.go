package worker_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/product"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/process"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/e2e/worker/workertest"
)

// permissions are all that jobferry-worker needs.
var permissions = []rbacv1.PolicyRule{
	{APIGroups: []string{"batch"}, Resources: []string{"jobs"}, Verbs: []string{"get", "list", "watch", "patch", "delete"}},
	{APIGroups: []string{"batch"}, Resources: []string{"jobs/status", "jobs/finalizers"}, Verbs: []string{"update"}},
	{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "watch", "create", "patch", "delete"}},
	{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
	{APIGroups: []string{"scheduling.k8s.io"}, Resources: []string{"workloads", "podgroups"}, Verbs: []string{"get", "create", "patch"}},
	{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get", "create", "update", "list", "watch", "patch"}},
}

// As a ServiceAccount with these permissions and no more, with leader election: a second process
// waits, serves its health all the same, and takes over at once when the first is asked to end.
func TestProcessWithItsPermissionsOnly(t *testing.T) {
	t.Parallel()
	s := open(t, "worker")
	kubeconfig := s.serviceAccount()
	name := "example.com/" + s.ns
	args := []string{"--leader-elect=true", "--namespace=" + s.ns, "--managed-by=" + name, "--sync-batch-period=" + batch}
	first, _, firstLog := s.process(kubeconfig, args...)
	s.start(rigtest.ManagedBy(name), unbound)
	s.exit(0, s.running(1)...)
	s.until(rigtest.Complete)

	second, address, secondLog := s.process(kubeconfig, args...)
	for _, path := range []string{"/healthz", "/readyz"} {
		s.get(address.health+path, "ok")
	}
	holder := s.holder()
	if err := first.Stop(); err != nil {
		t.Errorf("asked to end, the process ended with %v", err)
	}
	if s.holder() == holder {
		t.Error("the process has ended, and holds the Lease")
	}
	s.Create(s.cluster, rigtest.Job(s.ns, "next", rigtest.ManagedBy(name)))
	s.JobUntil(s.cluster, s.ns, "next", active(1))
	// A sync is counted when it's over: a moment after its writes.
	s.get(address.metrics+"/metrics", `jobferry_job_controller_job_syncs_total{action="pods_created",completion_mode="NonIndexed",result="success"} 1`)
	second.Kill()
	for _, file := range []string{firstLog, secondLog} {
		log, err := os.ReadFile(file)
		s.ok(err)
		if strings.Contains(string(log), "forbidden") {
			t.Errorf("a permission is missing:\n%s", log)
		}
	}
}

type addresses struct{ health, metrics string }

// process starts jobferry-worker with its servers on.
func (s *scene) process(kubeconfig string, args ...string) (*process.Process, addresses, string) {
	s.t.Helper()
	program, err := product.Program("jobferry-worker")
	s.ok(err)
	health, err := rig.FreeAddress()
	s.ok(err)
	metrics, err := rig.FreeAddress()
	s.ok(err)
	log := filepath.Join(s.t.TempDir(), "log")
	p, err := workertest.Start(program, kubeconfig, log, append(args, "--health-probe-bind-address="+health, "--metrics-bind-address="+metrics)...)
	s.ok(err)
	s.t.Cleanup(func() {
		p.Kill()
		if text, err := os.ReadFile(log); s.t.Failed() && err == nil {
			s.t.Logf("log of jobferry-worker:\n%s", text)
		}
	})
	return p, addresses{"http://" + health, "http://" + metrics}, log
}

// get asks until there is an answer that is OK, with a text in it.
func (s *scene) get(url, with string) {
	s.t.Helper()
	s.getMatch(url, regexp.MustCompile(regexp.QuoteMeta(with)))
}

// getMatch asks until there is an answer that is OK and matches.
func (s *scene) getMatch(url string, with *regexp.Regexp) {
	s.t.Helper()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		request, err := http.NewRequestWithContext(s.Context(), http.MethodGet, url, nil)
		s.ok(err)
		if response, err := http.DefaultClient.Do(request); err == nil {
			body, err := io.ReadAll(response.Body)
			_ = response.Body.Close() // it has been read
			if err == nil && response.StatusCode == http.StatusOK && with.Match(body) {
				return
			}
		}
		select {
		case <-tick.C:
		case <-s.Context().Done():
			s.t.Fatalf("%s doesn't answer with %q", url, with)
		}
	}
}

// holder is who leads.
func (s *scene) holder() string {
	s.t.Helper()
	lease, err := s.Client.CoordinationV1().Leases(s.ns).Get(s.Context(), "jobferry-worker", metav1.GetOptions{})
	s.ok(err)
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

// serviceAccount makes a ServiceAccount with the permissions, and returns its kubeconfig file.
func (s *scene) serviceAccount() string {
	s.t.Helper()
	meta := metav1.ObjectMeta{Name: s.ns}
	_, err := s.Client.CoreV1().ServiceAccounts(s.ns).Create(s.Context(), &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{})
	s.ok(err)
	_, err = s.Client.RbacV1().ClusterRoles().Create(s.Context(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: permissions}, metav1.CreateOptions{})
	s.ok(err)
	_, err = s.Client.RbacV1().ClusterRoleBindings().Create(s.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: s.ns},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: s.ns, Name: s.ns}},
	}, metav1.CreateOptions{})
	s.ok(err)
	kubeconfig, err := s.cluster.ServiceAccountKubeconfig(s.Context(), s.ns, s.ns)
	s.ok(err)
	file := filepath.Join(s.t.TempDir(), "kubeconfig")
	s.ok(os.WriteFile(file, kubeconfig, 0o600))
	return file
}

// A cluster needs no Job controller of the version whose semantics its Jobs shall have.
func TestOnAnOlderAPIServer(t *testing.T) {
	t.Parallel()
	s := open(t, "older")
	program, err := product.Program("jobferry-worker")
	s.ok(err)
	s.ok(workertest.AddNode(s.Context(), s.Client))
	p, err := workertest.Start(program, s.cluster.Kubeconfig(), os.DevNull, "--sync-batch-period="+batch, "--pod-failure-backoff=1ms")
	s.ok(err)
	defer p.Kill()
	s.start(indexed(2, 3), perIndex(1), rigtest.Suspended())
	s.until(rigtest.HasCondition(batchv1.JobSuspended))
	s.patch(`{"suspend":false}`)
	pods := s.running(2)
	s.exit(1, pods[0])
	s.exit(0, pods[1])
	s.exit(0, *s.anyPodUntil(func(p *corev1.Pod) bool { return p.Annotations[batchv1.JobIndexFailureCountAnnotation] == "1" }))
	s.exit(0, *s.anyPodUntil(func(p *corev1.Pod) bool { return workertest.Index(*p) == 2 }))
	if job := s.until(rigtest.Complete); job.Status.CompletedIndexes != "0-2" || job.Status.Failed != 1 {
		t.Errorf("status %+v", job.Status)
	}
}
