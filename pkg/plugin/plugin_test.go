package plugin

import (
	"net/http"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// The options of logs are those of a Pod's log, by the same names.
func TestLogQuery(t *testing.T) {
	for args, want := range map[string]string{
		"logs shards":                                        "",
		"logs job/shards --index 0":                          "index=0",
		"logs shards --pod pod/shards-1 -c aux":              "container=aux&pod=shards-1",
		"logs shards -f --timestamps":                        "follow=true&timestamps=true",
		"logs shards -p --tail 0":                            "previous=true&tailLines=0",
		"logs shards --since 90s":                            "sinceSeconds=90",
		"logs shards --limit-bytes 10":                       "limitBytes=10",
		"logs shards --since-time 2026-03-01T10:00:00+01:00": "sinceTime=2026-03-01T09%3A00%3A00Z",
	} {
		t.Run(args, func(t *testing.T) {
			h := newHub(t)
			got := h.run(strings.Fields(args)...)
			if want := "log of " + want + "\n"; got.out != want || got.code != 0 {
				t.Errorf("%+v, want %s", got, want)
			}
		})
	}
}

// All Pods, each line with its Pod and container, by index; followed or not.
func TestLogsOfAllPods(t *testing.T) {
	for _, more := range [][]string{nil, {"-f"}} {
		h := newHub(t)
		got := h.run(append([]string{"logs", "shards", "--all-pods", "--tail", "1"}, more...)...)
		for _, line := range []string{
			"[pod/shards-0/main] log of container=main&", "pod=shards-0&tailLines=1&worker=west\n",
			"[pod/shards-1/main] log of container=main&", "pod=shards-1&tailLines=1&worker=west\n",
		} {
			if !strings.Contains(got.out, line) || got.code != 0 {
				t.Errorf("%+v: no %q", got, line)
			}
		}
	}
	h := newHub(t)
	if got := h.run("logs", "shards", "--all-pods", "-f", "--max-log-requests", "1"); got.code != exitUsage || !strings.Contains(got.err, "--max-log-requests") {
		t.Errorf("%+v", got)
	}
}

// A Pod whose log can't be read is reported, and the others' logs are printed.
func TestLogsOfAllPodsWithoutOne(t *testing.T) {
	h := newHub(t)
	h.refuse(subPath+"log", http.StatusConflict, metav1.StatusReasonConflict, "container main is waiting", nil)
	got := h.run("logs", "shards", "--all-pods")
	if got.code != exitFailed || !strings.Contains(got.err, "shards-0: container main is waiting") || !strings.Contains(got.err, "shards-1: ") {
		t.Errorf("%+v", got)
	}
}

// With -f, logs waits for the start of a container, up to a timeout.
func TestLogsWaitForTheStart(t *testing.T) {
	notYet := refusal(http.StatusConflict, metav1.StatusReasonConflict, "it hasn't started there yet", nil)
	waiting := refusal(http.StatusBadRequest, metav1.StatusReasonBadRequest, "container main is waiting to start: ContainerCreating", nil)
	for name, test := range map[string]struct {
		answers []any
		args    []string
		code    int
		says    string
	}{
		"followed":     {[]any{notYet, waiting, nil}, []string{"-f"}, 0, "started\n"},
		"not followed": {[]any{notYet, nil}, nil, exitFailed, "it hasn't started there yet"},
		"too late":     {[]any{waiting}, []string{"-f", "--pod-running-timeout", "1ms"}, exitFailed, "ContainerCreating"},
	} {
		t.Run(name, func(t *testing.T) {
			h, asked := newHub(t), 0
			h.answers[subPath+"log"] = func() any {
				answer := test.answers[min(asked, len(test.answers)-1)]
				asked++
				return answer
			}
			got := h.run(append([]string{"logs", "shards"}, test.args...)...)
			if got.code != test.code || !strings.Contains(got.out+got.err, test.says) {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestPrefix(t *testing.T) {
	h := newHub(t)
	if got := h.run("logs", "shards", "--index", "1", "--prefix"); got.out != "[pod/shards-1/main] log of container=main&pod=shards-1&worker=west\n" {
		t.Errorf("%+v", got)
	}
}

// A command gets its input; its two outputs are separate; its exit code is the plugin's.
func TestExec(t *testing.T) {
	h := newHub(t)
	got := h.with("hello\n", "exec", "shards", "--index", "1", "-c", "main", "-i", "--", "cat", "-n")
	want := said{"asked: command=cat&command=-n&container=main&index=1&stderr=true&stdin=true&stdout=true\nin: hello\n", "trouble\n", 7}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// Attach has the streams that are asked for, and no command.
func TestAttach(t *testing.T) {
	h := newHub(t)
	got := h.with("hello\n", "attach", "shards", "--pod", "shards-1", "-i")
	want := said{"asked: pod=shards-1&stderr=true&stdin=true&stdout=true\nin: hello\n", "trouble\n", 7}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestTables(t *testing.T) {
	for args, want := range map[string][]string{
		"pods shards":         {"NAME ", "shards-0   0", "shards-1   1", "Running"},
		"pods shards -o name": {"pod/shards-1\npod/shards-0\n"},
		"jobs":                {"shards   west", "Running"},
		"jobs shards -o name": {"job.batch/shards\n"},
		"jobs -o jsonpath={.items[*].metadata.name}": {"shards"},
		"jobs shards -o json":                        {`"apiVersion": "batch/v1"`, `"kind": "Job"`},
		"events shards":                              {"hub    job/shards", "west   job/shards", "Created pod: shards-0"},
		"describe shards":                            {"Worker:           west", "WORKER west", "Created pod: shards-0"},
		"why shards":                                 {"west (placed)   fits now   2/2", "east            excluded", "1/2 clusters available"},
		"why shards -o json":                         {`"kind": "PlacementExplanation"`, `"apiVersion": "jobferry.dev/v1alpha1"`, `"answer": "FitsNow"`, `"podsNow": 2`},
		"why shards -o yaml":                         {"kind: PlacementExplanation\n", "answer: Excluded\n"},
		"clusters":                                   {"east   Unknown", "west   Unknown"},
		"clusters -o yaml":                           {"kind: WorkerClusterList", "kind: WorkerCluster\n"},
		"top":                                        {"WORKER ", "JOB ", "shards   west"},
		"version --client":                           {"kubectl-jobferry: "},
		"--version":                                  {"v0.0.0-"},
		"completion bash":                            {"__start_kubectl"},
		"__complete jobs sh":                         {"shards\n"},
		"__complete logs ":                           {"shards\n"},
		"__complete cordon ":                         {"east\nwest\n"},
		"__complete logs shards --pod shards-1":      {"shards-1\n"},
		"__complete clusters -o w":                   {"wide\n"},
		"__complete jobs -n team":                    {"team-a\nteam-b\n"},
		"__complete --context h":                     {"hub\n"},
		"__complete jobs --state St":                 {"Starting\n"},
		"__complete move shards --to w":              {"west\n"},
		"__complete top -o ":                         {"json\nyaml\n"},
		"version --client -o yaml":                   {"kubectlJobferry: v0.0.0-"},
		"top -o json":                                {`"name": "west"`, `"state": "Unknown"`, `"name": "shards"`, `"state": "Running"`, `"perSecond": 0`},
		"describe shards -o yaml":                    {"apiVersion: batch/v1", "state: Running\n", "from: west\n", "mirrors:\n  west:\n"},
		"describe shards -o json":                    {`"problems": []`, `"from": "hub"`, `"message": "Placed on worker west"`},
		"jobs --state running":                       {"shards   west"},
		"jobs --state Pending,running":               {"shards   west"},
	} {
		t.Run(args, func(t *testing.T) {
			fields := strings.Fields(args)
			if strings.HasSuffix(args, " ") {
				fields = append(fields, "")
			}
			got := newHub(t).run(fields...)
			for _, part := range want {
				if got.code != 0 || !strings.Contains(got.out, part) {
					t.Errorf("%+v: no %q", got, part)
				}
			}
			if strings.Contains(got.out, "not-ours") || strings.Contains(got.out, "\x1b") {
				t.Errorf("%q", got.out)
			}
		})
	}
}

// Errors say what to do.
func TestErrors(t *testing.T) {
	details := &metav1.StatusDetails{Group: "subresources.jobferry.dev", Kind: "jobs", Name: "shards"}
	for name, test := range map[string]struct {
		edit func(*fakeHub)
		args string
		code int
		want []string
	}{
		"forbidden": {func(h *fakeHub) {
			h.refuse(subPath+"log", http.StatusForbidden, metav1.StatusReasonForbidden, `jobs.subresources.jobferry.dev "shards" is forbidden`, details)
		}, "logs shards", exitFailed, []string{"is forbidden", "role view (pods, logs, events, why) or edit (exec, attach, port-forward, cp)"}},
		"no aggregated API": {func(h *fakeHub) { delete(h.answers, subPath+"pods") }, "pods shards", exitFailed,
			[]string{"subresources.enabled=true"}},
		"no manager": {func(h *fakeHub) {
			h.refuse(subPath+"pods", http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "service unavailable", nil)
		}, "pods shards", exitFailed, []string{"kubectl get apiservice"}},
		"no right to why": {func(h *fakeHub) {
			h.refuse(subPath+"why", http.StatusForbidden, metav1.StatusReasonForbidden, `jobs.subresources.jobferry.dev "shards" is forbidden`, details)
		}, "why shards", exitFailed, []string{"is forbidden", "role view"}},
		"an older manager": {func(h *fakeHub) {
			h.refuse(subPath+"why", http.StatusNotFound, metav1.StatusReasonNotFound, `there is nothing at "/apis/subresources.jobferry.dev/v1alpha1/..."`, nil)
		}, "why shards", exitFailed, []string{"older than this plugin"}},
		"no such Job": {func(h *fakeHub) {
			h.refuse(jobPath, http.StatusNotFound, metav1.StatusReasonNotFound, `jobs.batch "shards" not found`, &metav1.StatusDetails{Kind: "jobs", Name: "shards"})
		}, "describe shards", exitFailed, []string{"there is no Job shards in namespace team-a", "kubectl jobferry jobs -A", "-n selects another"}},
		"no CRD":             {func(h *fakeHub) { delete(h.answers, "/apis/jobferry.dev/v1alpha1/workerclusters") }, "clusters", exitFailed, []string{"no WorkerClusters"}},
		"no such command":    {nil, "frobnicate", exitUsage, []string{"frobnicate", "--help"}},
		"a mistyped command": {nil, "jbos", exitUsage, []string{"there is no command \"jbos\"\n\nDid you mean this?\n\tjobs\n"}},
		"a report's format":  {nil, "top -o wide", exitUsage, []string{"--output wide: it must be json or yaml"}},
		"no such state":      {nil, "jobs --state Walking", exitUsage, []string{"--state Walking: it must be one of Failing, OutOfTouch"}},
		"no such field":      {nil, "jobs --sort-by .spec.nothing", exitUsage, []string{"couldn't find any field with path"}},
		"a whole object":     {nil, "jobs --sort-by .status.conditions", exitUsage, []string{"its values are neither all numbers nor all texts or times"}},
		"no field at all":    {nil, "jobs --sort-by {", exitUsage, []string{"--sort-by {"}},
		"two to watch":       {nil, "jobs a b -w", exitUsage, []string{"--watch takes one NAME"}},
		"unknown flag":       {nil, "jobs --frob", exitUsage, []string{"--frob", "kubectl jobferry jobs --help"}},
		"no Job":             {nil, "logs", exitUsage, []string{"a JOB is missing"}},
		"two Jobs":           {nil, "pods a b", exitUsage, []string{`unexpected argument "b"`}},
		"no command":         {nil, "exec shards", exitUsage, []string{"-- COMMAND"}},
		"format":             {nil, "jobs -o frob", exitUsage, []string{"frob", "json"}},
		"pod and index":      {nil, "logs shards --pod a --index 1", exitUsage, []string{"not both"}},
		"time":               {nil, "logs shards --since-time noon", exitUsage, []string{"--since-time"}},
		"selector":           {nil, "jobs -l a=b=c", exitUsage, []string{"--selector"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t)
			if test.edit != nil {
				test.edit(h)
			}
			got := h.run(strings.Fields(test.args)...)
			if got.code != test.code {
				t.Errorf("exit code %d, want %d", got.code, test.code)
			}
			for _, part := range test.want {
				if !strings.Contains(got.err, part) {
					t.Errorf("%q doesn't say %q", got.err, part)
				}
			}
		})
	}
}

// A mistyped name removes nothing from another worker.
func TestUnregisterTheWrongName(t *testing.T) {
	h := newHub(t)
	h.answers["/api/v1/namespaces/kube-system"] = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "here"}}
	h.answers["/apis/jobferry.dev/v1alpha1/workerclusters"] = &v1alpha1.WorkerClusterList{Items: []v1alpha1.WorkerCluster{
		{ObjectMeta: metav1.ObjectMeta{Name: "west"}, Status: v1alpha1.WorkerClusterStatus{ClusterUID: "here"}}}}
	t.Setenv("KUBECONFIG", h.kubeconfig())
	got := h.run("unregister", "wset", "--worker-context", "hub", "--yes")
	if got.code != exitFailed || !strings.Contains(got.err, "leads to the worker west, not to wset: nothing was changed") {
		t.Errorf("%d: %s", got.code, got.err)
	}
	for _, r := range h.asked {
		if r.Method != http.MethodGet {
			t.Errorf("%s %s", r.Method, r.URL.Path)
		}
	}
}

// describe shows what can be read, also without the worker's side.
func TestDescribeWithoutRights(t *testing.T) {
	h := newHub(t)
	h.refuse(subPath+"mirror", http.StatusForbidden, metav1.StatusReasonForbidden, "no", &metav1.StatusDetails{Group: "subresources.jobferry.dev"})
	h.refuse("/apis/jobferry.dev/v1alpha1/workerclusters", http.StatusForbidden, metav1.StatusReasonForbidden, "no", nil)
	got := h.run("describe", "shards")
	if got.code != 0 || !strings.Contains(got.out, "can't be read: no") || !strings.Contains(got.out, "Placed on worker west") {
		t.Errorf("%+v", got)
	}
}

// Colours are for terminals, unless the user turns them off.
func TestPalette(t *testing.T) {
	for _, test := range []struct {
		terminal bool
		env      map[string]string
		want     bool
	}{
		{true, nil, true},
		{false, nil, false},
		{true, map[string]string{"NO_COLOR": "1"}, false},
		{true, map[string]string{"TERM": "dumb"}, false},
		{true, map[string]string{"TERM": "xterm"}, true},
	} {
		got := paletteFor(test.terminal, func(name string) string { return test.env[name] })
		if (got != nil) != test.want {
			t.Errorf("terminal: %t, %v: %v", test.terminal, test.env, got)
		}
	}
}

// An error of the manager about a worker gets no advice about the manager.
func TestErrorOfTheManager(t *testing.T) {
	h := newHub(t)
	h.refuse(subPath+"pods", http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, `worker "west" is disconnected`, nil)
	if got := h.run("pods", "shards"); got.err != "error: worker \"west\" is disconnected\n" || got.code != exitFailed {
		t.Errorf("%+v", got)
	}
}

// Of Jobs that wait, the manager says where they are in line. Without an answer, the table has the
// rest.
func TestJobsInLine(t *testing.T) {
	h := newHub(t)
	waits := hubJob()
	waits.Status = batchv1.JobStatus{}
	h.answers["/apis/batch/v1/namespaces/team-a/jobs"] = &batchv1.JobList{Items: []batchv1.Job{*waits}}
	e := whyWest()
	e.Line = []v1alpha1.WaitingJob{{Name: "shards", WaitingExplanation: v1alpha1.WaitingExplanation{Place: 3, Of: 9}}}
	h.answers[subPath+"why"] = e
	elsewhere := waits.DeepCopy()
	elsewhere.Namespace = "team-b"
	h.answers["/apis/batch/v1/jobs"] = &batchv1.JobList{Items: []batchv1.Job{*waits, *elsewhere}}
	other := whyWest()
	other.Line = []v1alpha1.WaitingJob{{Name: "shards", WaitingExplanation: v1alpha1.WaitingExplanation{Place: 5, Of: 9}}}
	h.answers[strings.Replace(subPath, "team-a", "team-b", 1)+"why"] = other
	if got := h.run("jobs"); !strings.Contains(got.out, "In line: 3 of 9.") {
		t.Errorf("%+v", got)
	}
	if got := h.run("jobs", "-A"); !strings.Contains(got.out, "In line: 3 of 9.") || !strings.Contains(got.out, "In line: 5 of 9.") {
		t.Errorf("%+v", got)
	}
	h.refuse(subPath+"why", http.StatusForbidden, metav1.StatusReasonForbidden, "forbidden", nil)
	if got := h.run("jobs"); strings.Contains(got.out, "In line") || !strings.Contains(got.out, "shards") || got.code != 0 {
		t.Errorf("%+v", got)
	}
}
