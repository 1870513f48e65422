package clients_test

import (
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	"github.com/jobferry/jobferry/e2e/clients"
	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
)

// Clients that look for a Job's Pods say that there are none, or misjudge the Job, where the hub
// shows no Pods, and do what they do on any cluster where it does. Those that aren't programs of
// this machine are played, request by request.
func TestClientsThatLookForPods(t *testing.T) {
	f := clients.For(t)
	clients.RunManagerWithPods(f, t)
	f.Register("w1")
	for name, test := range map[string]func(*testing.T, *ferrytest.Ferry){
		"kubectl": testKubectl, "k9s": testK9s, "Nextflow": testNextflow, "Nextflow deletes": testNextflowDeletes, "KEDA": testKEDA,
		"Python": testPython, "Ansible": testAnsible, "Airflow": testAirflow,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := clients.For(t)
			f.LeaveWorker("w1")
			test(t, f)
		})
	}
}

func testKubectl(t *testing.T, f *ferrytest.Ferry) {
	f.Submit("job", rigtest.RunForever())
	f.HubJobUntil("job", rigtest.Running(1))
	verbs := map[string][]string{
		"logs": {"logs", "job/job"}, "attach": {"attach", "job/job"}, "exec": {"exec", "job/job", "--", "true"}, "port-forward": {"port-forward", "job/job", ":80"},
	}
	for name, verb := range verbs {
		args := append([]string{verb[0], "-n", f.NS, "--pod-running-timeout=1s"}, verb[1:]...)
		if _, err := f.Hub.Kubectl(f.Context(), "", args...); err == nil || !strings.HasSuffix(err.Error(), "error: timed out waiting for the condition") {
			t.Errorf("%s, without Pods: %v", name, err)
		}
	}
	clients.ShowPods(f, "job", clients.InPhase(corev1.PodRunning))
	if log := f.Kubectl(f.Hub, "", "logs", "-n", f.NS, "job/job"); !strings.Contains(log, "started\n") {
		t.Errorf("%q", log)
	}
	if described := f.Kubectl(f.Hub, "", "describe", "pod", "-n", f.NS, "-l", "job-name=job"); !strings.Contains(described, "Job/job") {
		t.Errorf("describe pod: %s", described)
	}
}

// k9s asks for tables of what it lists, and finds the Pods whose logs it follows by the Job's
// selector: internal/dao of k9s 0.50.
func testK9s(t *testing.T, f *ferrytest.Ferry) {
	f.Submit("job", rigtest.RunForever(), rigtest.Parallel(2))
	job := f.HubJobUntil("job", rigtest.Running(2))
	core := f.Hub.Client().CoreV1()
	selector := labels.SelectorFromSet(job.Spec.Selector.MatchLabels).String()
	rows := func() [][]any {
		var table metav1.Table
		ask(t, f, core.RESTClient().Get().Namespace(f.NS).Resource("pods").Param("labelSelector", selector).
			SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io"), &table)
		var cells [][]any
		for _, row := range table.Rows {
			cells = append(cells, row.Cells)
		}
		return cells
	}
	if rows := rows(); len(rows) != 0 {
		t.Errorf("without Pods: %v", rows)
	}
	clients.ShowPods(f, "job", clients.InPhase(corev1.PodRunning))
	for len(rows()) < 2 { // the other one comes at once, too
		if f.Context().Err() != nil {
			t.Fatalf("k9s lists %v", rows())
		}
	}
	pods, err := core.Pods(f.NS).List(f.Context(), metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		t.Fatal(err)
	}
	tail := int64(100)
	for _, pod := range pods.Items {
		log, err := core.Pods(f.NS).GetLogs(pod.Name, &corev1.PodLogOptions{Container: "main", Follow: true, Timestamps: true, TailLines: &tail}).Stream(f.Context())
		if err != nil {
			t.Errorf("%s: %v", pod.Name, err)
			continue
		}
		if line, err := readLine(log); err != nil || !strings.Contains(line, "Z line ") && !strings.HasSuffix(line, "/main started") {
			t.Errorf("%s: %q, %v", pod.Name, line, err)
		}
		log.Close()
	}
}

// Nextflow takes a task's state from the container of the Job's newest Pod: K8sClient.jobState.
func testNextflow(t *testing.T, f *ferrytest.Ferry) {
	n := nextflow{t, f}
	n.submit("nf-task", "forever", 0)
	f.HubJobUntil("nf-task", rigtest.Running(1))
	if state := n.state("nf-task"); state != nil {
		t.Errorf("without Pods, a task that runs is in state %v", state)
	}
	shown := clients.ShowPods(f, "nf-task", clients.InPhase(corev1.PodRunning))
	if state := n.state("nf-task"); state["running"] == nil {
		t.Errorf("a task that runs is in state %v", state)
	}
	if node := n.get("/api/v1/namespaces/" + f.NS + "/pods/" + shown.Name + "/status").Spec["nodeName"]; node != "jobferry-w1" {
		t.Errorf("the task runs on %v", node)
	}

	n.submit("nf-fails", "5s", 3)
	clients.ShowPods(f, "nf-fails", clients.InPhase(corev1.PodFailed))
	terminated, _ := n.state("nf-fails")["terminated"].(map[string]any)
	if terminated["exitCode"] != 3.0 || terminated["startedAt"] == nil || terminated["finishedAt"] == nil {
		t.Errorf("a task that has failed is in state %v", terminated)
	}
	log, err := f.Hub.Client().CoreV1().RESTClient().Get().AbsPath("/api/v1/namespaces/" + f.NS + "/pods/" + n.pod("nf-fails") + "/log").DoRaw(f.Context())
	if err != nil || !strings.Contains(string(log), "ended with exit code 3\n") {
		t.Errorf("%q, %v", log, err)
	}
}

// Nextflow deletes a Job's Pods, and then the Job without a propagation policy, which orphans Pods.
// Nothing of them stays, on the hub or in the worker.
func testNextflowDeletes(t *testing.T, f *ferrytest.Ferry) {
	n := nextflow{t, f}
	n.submit("nf-task", "forever", 0)
	clients.ShowPods(f, "nf-task", clients.InPhase(corev1.PodRunning))
	rest := f.Hub.Client().CoreV1().RESTClient()
	for _, path := range []string{"/api/v1/namespaces/" + f.NS + "/pods/" + n.pod("nf-task"), "/apis/batch/v1/namespaces/" + f.NS + "/jobs/nf-task"} {
		if err := rest.Delete().AbsPath(path).Do(f.Context()).Error(); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	f.HubJobGone("nf-task")
	f.MirrorGone("w1", "nf-task")
	if n.pod("nf-task") != "" {
		f.Until(rig.Object(rest, "pods", f.NS, n.pod("nf-task")), rig.Gone)
	}
}

// nextflow is what its executor asks for, with Jobs.
type nextflow struct {
	t *testing.T
	f *ferrytest.Ferry
}

// answer is as much of an object as Nextflow reads.
type answer struct {
	Metadata map[string]any
	Spec     map[string]any
	Status   map[string]any
	Items    []answer
}

// submit posts a Job whose container has the Job's name: Nextflow refuses the status of another.
func (n nextflow) submit(name, runFor string, exitCode int) {
	n.t.Helper()
	body := fmt.Sprintf(`{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":%[1]q,"labels":{"nextflow.io/app":"nextflow"}},
		"spec":{"backoffLimit":0,"template":{"metadata":{"labels":{"nextflow.io/app":"nextflow","rig.jobferry.dev/run-for":%[2]q,"rig.jobferry.dev/exit-code":"%[3]d"}},
		"spec":{"restartPolicy":"Never","containers":[{"name":%[1]q,"image":"example.org/task","command":["bash","-o","pipefail"]}]}}}}`, name, runFor, exitCode)
	err := n.f.Hub.Client().BatchV1().RESTClient().Post().AbsPath("/apis/batch/v1/namespaces/" + n.f.NS + "/jobs").Body([]byte(body)).Do(n.f.Context()).Error()
	if err != nil {
		n.t.Fatal(err)
	}
}

func (n nextflow) get(path string) (got answer) {
	n.t.Helper()
	ask(n.t, n.f, n.f.Hub.Client().CoreV1().RESTClient().Get().RequestURI(path), &got)
	return got
}

// pod is the newest Pod of a Job.
func (n nextflow) pod(job string) (name string) {
	n.t.Helper()
	latest := ""
	for _, pod := range n.get("/api/v1/namespaces/" + n.f.NS + "/pods?labelSelector=job-name=" + job).Items {
		if created, _ := pod.Metadata["creationTimestamp"].(string); created > latest {
			latest, name = created, pod.Metadata["name"].(string)
		}
	}
	return name
}

// state is that of a task's container; nil: Nextflow takes the task for one that hasn't started.
func (n nextflow) state(job string) map[string]any {
	n.t.Helper()
	pod := n.pod(job)
	if pod == "" {
		status := n.get("/apis/batch/v1/namespaces/" + n.f.NS + "/jobs/" + job + "/status").Status
		if status["succeeded"] != nil || status["failed"] != nil {
			n.t.Errorf("the Job has ended: %v", status)
		}
		return nil
	}
	statuses, _ := n.get("/api/v1/namespaces/" + n.f.NS + "/pods/" + pod + "/status").Status["containerStatuses"].([]any)
	if len(statuses) == 0 {
		n.t.Fatalf("Pod %s has no status of its container", pod)
	}
	container := statuses[0].(map[string]any)
	if name, _ := container["name"].(string); name == "" || !strings.HasPrefix(pod, name) {
		n.t.Errorf("Pod %s has the container %q", pod, name)
	}
	return container["state"].(map[string]any)
}

// KEDA counts a ScaledJob's Jobs that haven't ended as pending unless a Pod of theirs runs, has
// succeeded, or has all of some conditions: scale_jobs.go of KEDA 2.20.
func testKEDA(t *testing.T, f *ferrytest.Ferry) {
	const scaledJob = "scaledjob.keda.sh/name"
	for range 2 {
		job := f.Job("", rigtest.RunForever(), rigtest.PodLabel(scaledJob, "consumer"), func(j *batchv1.Job) {
			j.GenerateName, j.Labels = "consumer-", map[string]string{scaledJob: "consumer"}
		})
		job, err := f.Hub.Client().BatchV1().Jobs(f.NS).Create(f.Context(), job, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		f.HubJobUntil(job.Name, rigtest.Running(1))
	}
	jobs, err := f.Hub.Client().BatchV1().Jobs(f.NS).List(f.Context(), metav1.ListOptions{LabelSelector: scaledJob + "=consumer"})
	if err != nil {
		t.Fatal(err)
	}
	pending := func(isStarted func(*corev1.Pod) bool) (n int) {
		for _, job := range jobs.Items {
			if !hasPod(t, f, job.Name, isStarted) {
				n++
			}
		}
		return n
	}
	if n := pending(clients.InPhase(corev1.PodRunning)); n != 2 {
		t.Errorf("without Pods, KEDA counts %d Jobs as pending", n)
	}
	for _, job := range jobs.Items {
		clients.ShowPods(f, job.Name, isReady)
	}
	if n := pending(clients.InPhase(corev1.PodRunning)); n != 0 {
		t.Errorf("KEDA counts %d Jobs that run as pending", n)
	}
	if n := pending(isReady); n != 0 {
		t.Errorf("KEDA counts %d Jobs as pending by pendingPodConditions", n)
	}
}

// hasPod says whether a condition holds for a Pod of a Job.
func hasPod(t *testing.T, f *ferrytest.Ferry, job string, condition func(*corev1.Pod) bool) bool {
	t.Helper()
	pods, err := f.Hub.Client().CoreV1().Pods(f.NS).List(f.Context(), metav1.ListOptions{LabelSelector: "job-name=" + job})
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool { return condition(&p) })
}

// isReady is what the conditions Ready and PodScheduled in pendingPodConditions ask for.
func isReady(p *corev1.Pod) bool {
	found := 0
	for _, c := range p.Status.Conditions {
		if (c.Type == corev1.PodReady || c.Type == corev1.PodScheduled) && c.Status == corev1.ConditionTrue {
			found++
		}
	}
	return found == 2
}

// runPython runs a script of testdata with the hub's kubeconfig and the test's namespace.
func runPython(t *testing.T, f *ferrytest.Ferry, script string, arguments ...string) (string, error) {
	t.Helper()
	out, err := exec.CommandContext(f.Context(), python, append([]string{"testdata/" + script, f.Hub.Kubeconfig(), f.NS}, arguments...)...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// The Python client checks what it reads against its own idea of a Pod and a Node.
func testPython(t *testing.T, f *ferrytest.Ferry) {
	needsPython(t)
	f.Submit("job", rigtest.RunFor(30*time.Second), func(j *batchv1.Job) { j.Spec.Template.Spec.Containers[0].Stdin = true })
	f.HubJobUntil("job", rigtest.Running(1))
	if out, err := runPython(t, f, "pods.py", "pods", "job"); err != nil || out != "" {
		t.Errorf("without Pods: %s, %v", out, err)
	}
	pod := clients.ShowPods(f, "job", clients.InPhase(corev1.PodRunning))
	for command, want := range map[string]string{
		"pods": pod.Name + " Running jobferry-w1 main", "nodes": "jobferry-w1 Ready=True", "logs": pod.Name + "/main started", "exec": "said by " + pod.Name,
	} {
		if out, err := runPython(t, f, "pods.py", command, "job"); err != nil || !strings.Contains(out, want) {
			t.Errorf("%s: %v, %q has no %q", command, err, out, want)
		}
	}
	if out, err := runPython(t, f, "pods.py", "watch", "job"); err != nil || !strings.HasSuffix(out, "Succeeded") {
		t.Errorf("watch: %v, %q", err, out)
	}
}

// Ansible's k8s_log finds a Job's Pods by its selector: plugins/modules/k8s_log.py of
// kubernetes.core.
func testAnsible(t *testing.T, f *ferrytest.Ferry) {
	needsPython(t)
	job := f.Submit("job", rigtest.RunForever())
	f.HubJobUntil("job", rigtest.Running(1))
	out, err := runPython(t, f, "k8s_log.py", "job")
	if want := "No pods in namespace " + f.NS + " matched selector "; err == nil || !strings.Contains(out, want) || !strings.Contains(out, string(job.UID)) {
		t.Errorf("without Pods: %v, %q", err, out)
	}
	pod := clients.ShowPods(f, "job", clients.InPhase(corev1.PodRunning))
	if out, err := runPython(t, f, "k8s_log.py", "job"); err != nil || !strings.Contains(out, pod.Name+"/main started") {
		t.Errorf("%v, %q", err, out)
	}
}

// Airflow's KubernetesJobOperator finds the Pods by labels of its own, of which the template's
// are: operators/job.py of its provider cncf.kubernetes.
func testAirflow(t *testing.T, f *ferrytest.Ferry) {
	needsPython(t)
	run := func(command string) string {
		t.Helper()
		out, err := runPython(t, f, "airflow.py", command, "job-task")
		if err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
		return out
	}
	run("create")
	f.HubJobUntil("job-task", rigtest.Running(1))
	if out, err := runPython(t, f, "airflow.py", "pods", "job-task"); err == nil || !strings.Contains(out, "No pods running with labels dag_id=") {
		t.Errorf("without Pods: %v, %q", err, out)
	}
	pod := clients.ShowPods(f, "job-task", clients.InPhase(corev1.PodRunning))
	if out := run("pods"); out != pod.Name {
		t.Errorf("Airflow finds %q, want %s", out, pod.Name)
	}
	f.HubJobUntil("job-task", rigtest.Failed)
	clients.ShowPods(f, "job-task", clients.InPhase(corev1.PodFailed))
	if out := run("job"); out != "Failed" {
		t.Errorf("the Job is %q", out)
	}
	if out := run("logs"); !strings.Contains(out, "ended with exit code 1") {
		t.Errorf("%q", out)
	}
}

// ask sends a request, and decodes the answer.
func ask(t *testing.T, f *ferrytest.Ferry, request *rest.Request, into any) {
	t.Helper()
	content, err := request.DoRaw(f.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(content, into); err != nil {
		t.Fatal(err)
	}
}

// readLine reads one line of a log that is followed.
func readLine(log io.Reader) (string, error) {
	var line []byte
	for one := make([]byte, 1); ; {
		if _, err := io.ReadFull(log, one); err != nil {
			return string(line), err
		}
		if one[0] == '\n' {
			return string(line), nil
		}
		line = append(line, one[0])
	}
}
