package chart_test

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/jobferry/jobferry/e2e/chart/charttest"
	"github.com/jobferry/jobferry/e2e/chart/deploy"
	"github.com/jobferry/jobferry/e2e/chart/permissions"
	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
)

// run starts a program as the release's Deployment would.
func (r *release) run(name string, listen ...string) charttest.Process {
	r.t.Helper()
	return charttest.Run(r.t, r.cluster, program(r.t, name), listen...)
}

// The manager, with exactly the rights that the chart gives, and with all parts switched on,
// registers a worker, runs Jobs with what they refer to, serves its API, its webhook and its
// metrics, and hands over to another one. Nothing is refused; every right is used.
func TestManagerWithTheChartsRights(t *testing.T) {
	r := newRelease(t, "hub", hubChart)
	r.install(chartDir(hubChart), "--set", "carry.kinds={ConfigMap,Secret,Service,ServiceAccount},admission.mode=Webhook",
		"--set", "config.workerProbeInterval=1s,crds.keep=false,pods.enabled=true,pods.requestCertificate=true")
	r.established()
	r.hasPriority("jobferry-manager")
	metrics, api := charttest.FreeAddress(t), charttest.FreeAddress(t)
	first := r.run("jobferry-manager", "--metrics-bind-address="+string(metrics), "--subresources-bind-address="+string(api), podsAddress, podsPort(t),
		"--health-probe-bind-address="+string(charttest.FreeAddress(t)), "--admission-webhook-bind-address="+string(charttest.FreeAddress(t)))
	if err := deploy.Aggregate(t.Context(), r.cluster, string(api)); err != nil {
		t.Fatal(err)
	}

	worker := r.Cluster("w1")
	r.register("w1", worker)
	r.kubectl("patch", "workercluster", "w1", "--type=merge", "-p", `{"spec":{"carry":["ConfigMap","Secret","Service","ServiceAccount"]}}`)

	ns := r.LabelledNamespace(ferrytest.Dispatched, r.cluster)
	r.kubectl("label", "namespace", ns, "jobferry.dev/pods=enabled")
	r.kubectl("create", "configmap", "settings", "-n", ns, "--from-literal=a=b")
	r.kubectl("create", "secret", "generic", "password", "-n", ns, "--from-literal=a=b")
	r.kubectl("create", "serviceaccount", "runner", "-n", ns)
	r.kubectl("create", "service", "clusterip", "peers", "-n", ns, "--clusterip=None")
	r.Create(r.cluster, job(ns, "pi", referring("settings", "password", "runner", "peers")))
	r.JobUntil(r.cluster, ns, "pi", rigtest.Complete)
	r.Create(r.cluster, job(ns, "long", rigtest.RunForever()))
	r.JobUntil(r.cluster, ns, "long", rigtest.Running(1))

	r.usersSeePods(ns, "long")
	r.podsAreShown(ns, "long")
	r.scrapersAreAsked(metrics)
	r.certificatesAreSpread()

	second := r.run("jobferry-manager", "--metrics-bind-address=0", "--subresources-bind-address=0", podsAddress, podsPort(t),
		"--health-probe-bind-address=0", "--admission-webhook-bind-address="+string(charttest.FreeAddress(t)))
	if err := first.Stop(); err != nil {
		t.Errorf("asked to end, the manager ended with %v", err)
	}
	r.kubectl("delete", "job", "long", "-n", ns) // waits: the second one leads
	r.kubectl("delete", "secret", "w1", "-n", namespace)
	r.kubectl("wait", "--for=delete", "workercluster/w1", "--timeout=60s")
	if err := second.Stop(); err != nil {
		t.Errorf("asked to end, the second manager ended with %v", err)
	}
	checkRights(t, r.cluster, "jobferry-manager", permissions.Manager, permissions.Carry, permissions.Subresources, permissions.Pods, permissions.PodsCert,
		permissions.Admission, permissions.Kueue, permissions.MetricsAuth)
}

// job makes a Job for Jobferry.
func job(namespace, name string, options ...rigtest.Option) *batchv1.Job {
	return rigtest.Job(namespace, name, append([]rigtest.Option{rigtest.ManagedBy("jobferry.dev/dispatcher")}, options...)...)
}

// referring has the Pods refer to a ConfigMap, a Secret, a ServiceAccount and a headless Service.
func referring(configMap, secret, account, service string) rigtest.Option {
	return func(j *batchv1.Job) {
		spec := &j.Spec.Template.Spec
		spec.ServiceAccountName, spec.Subdomain = account, service
		spec.Containers[0].EnvFrom = []corev1.EnvFromSource{
			{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: configMap}}},
			{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: secret}}},
		}
	}
}

// register registers a worker by hand, as NOTES.txt says.
func (r *release) register(name string, worker *rig.Cluster) {
	r.t.Helper()
	r.kubectl("create", "secret", "generic", name, "-n", namespace, "--from-file=kubeconfig="+worker.Kubeconfig())
	r.kubectl("label", "secret", name, "-n", namespace, "jobferry.dev/worker-cluster=true")
	r.kubectl("wait", "--for=create", "workercluster/"+name, "--timeout=60s")
	r.kubectl("wait", "--for=condition=Ready", "workercluster/"+name, "--timeout=60s")
}

// usersSeePods asks for a Job's Pods, the table of Jobs, and why it's there, as a user with the
// hub's own role view, and as one without.
func (r *release) usersSeePods(ns, job string) {
	r.t.Helper()
	r.kubectl("create", "rolebinding", "viewers", "-n", ns, "--clusterrole=view", "--user=reader")
	path := "/apis/subresources.jobferry.dev/v1alpha1/namespaces/" + ns + "/jobs/" + job + "/pods"
	if pods := r.kubectl("get", "--raw", path, "--as=reader"); !strings.Contains(pods, `"name":"`+job+`-`) {
		r.t.Errorf("the Pods are %s", pods)
	}
	why := strings.TrimSuffix(path, "pods") + "why"
	if explanation := r.kubectl("get", "--raw", why, "--as=reader"); !strings.Contains(explanation, `"kind":"PlacementExplanation"`) {
		r.t.Errorf("the explanation is %s", explanation)
	}
	if table := r.kubectl("get", "dispatchedjobs", "-n", ns, "--as=reader"); !strings.Contains(table, job) {
		r.t.Errorf("the table is %s", table)
	}
	r.kubectl("wait", "dispatchedjob", job, "-n", ns, "--as=reader", "--for=jsonpath={.status.state}=Running", "--timeout=60s")
	_, err := r.cluster.Kubectl(r.Context(), "", "get", "--raw", path, "--as=stranger")
	if err == nil || !strings.Contains(err.Error(), "Forbidden") {
		r.t.Errorf("who has no role gets %v", err)
	}
}

// podsAddress is where the hub's API server reaches the manager as a kubelet, in place of a Pod's
// own.
const podsAddress = "--pods-address=127.0.0.1"

func podsPort(t *testing.T) string {
	t.Helper()
	_, port, _ := strings.Cut(string(charttest.FreeAddress(t)), ":")
	return "--pods-port=" + port
}

// podsAreShown reads the log of a Job on the hub, without a plugin.
func (r *release) podsAreShown(ns, job string) {
	r.t.Helper()
	r.kubectl("wait", "pods", "-n", ns, "-l", "job-name="+job, "--for=jsonpath={.status.phase}=Running", "--timeout=60s")
	if log := r.kubectl("logs", "-n", ns, "job/"+job); !strings.Contains(log, "started") {
		r.t.Errorf("the log is %s", log)
	}
}

// scrapersAreAsked reads the metrics as a ServiceAccount that may, and as one that may not.
func (r *release) scrapersAreAsked(metrics charttest.Address) {
	r.t.Helper()
	r.kubectl("create", "serviceaccount", "prometheus", "-n", namespace)
	r.kubectl("create", "clusterrolebinding", "prometheus", "--clusterrole="+r.chart+"-metrics-reader",
		"--serviceaccount="+namespace+":prometheus")
	r.t.Cleanup(func() { r.later("delete", "clusterrolebinding", "prometheus") })
	for account, want := range map[string]int{"prometheus": http.StatusOK, "default": http.StatusForbidden} {
		token := strings.TrimSpace(r.kubectl("create", "token", account, "-n", namespace))
		if got, _ := scrape(r.t, metrics, token); got != want {
			r.t.Errorf("%s: status %d, want %d", account, got, want)
		}
	}
}

// scrape reads the metrics that are served by HTTPS.
func scrape(t *testing.T, metrics charttest.Address, token string) (status int, body string) {
	t.Helper()
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // it signs for itself
	}}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+string(metrics)+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(content)
}

// certificatesAreSpread waits until the hub has been told the webhook's certificate.
func (r *release) certificatesAreSpread() {
	r.t.Helper()
	r.kubectl("wait", "mutatingwebhookconfiguration/jobferry-dispatch", "--for=jsonpath={.webhooks[0].clientConfig.caBundle}", "--timeout=60s")
}

// later runs kubectl in a cleanup, when the test's own context has ended.
func (r *release) later(args ...string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, err := r.cluster.Kubectl(ctx, "", args...); err != nil {
		r.t.Error(err)
	}
}
