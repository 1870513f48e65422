package subresources_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/manager/subresources"
	"github.com/jobferry/jobferry/pkg/mirror"
)

func TestAggregatedAPI(t *testing.T) {
	f := ferrytest.For(t)
	f.RunManager()
	f.Register("w1", "w2")
	serve(f, t)
	for name, test := range map[string]func(*testing.T){
		"Pods, mirror and events as in the worker":       readsWhatIsInTheWorker,
		"a Job that has nothing to show says why":        saysWhyThereIsNothing,
		"a Pod of somebody else is not found":            hidesOthersPods,
		"a log is the container's":                       readsLogs,
		"a log is followed until the Pod ends":           followsUntilTheEnd,
		"parameters that can't be meant are refused":     refusesParameters,
		"who may not read logs gets Forbidden":           forbidsWhatIsNotGranted,
		"a command runs with input, output and its code": runsCommands,
		"a session needs create, whatever the method":    needsCreateForSessions,
		"each kind of session is a right of its own":     keepsSessionsApart,
		"attach connects the streams of a container":     attaches,
		"ports of a Pod are forwarded":                   forwardsPorts,
		"discovery and OpenAPI are complete":             describesItself,
		"nobody comes in by the side":                    refusesSideEntrances,
		"what is between user and hub stays there":       keepsHeadersApart,
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); test(t) })
	}
}

func readsWhatIsInTheWorker(t *testing.T) {
	f := ferrytest.For(t)
	hub := f.Submit("job", ferrytest.OnWorker("w1"), rigtest.Parallel(2), rigtest.RunForever())
	f.LeaveWorker("w1")
	f.HubJobUntil("job", rigtest.Running(2))
	u := reader(f, t)

	var pods corev1.PodList
	u.object(f.Context(), &pods, f.NS, "job", "pods")
	var got, want []string
	for _, p := range pods.Items {
		got = append(got, p.Name+" on "+p.Spec.NodeName)
	}
	for _, p := range f.Pods(f.Cluster("w1")) {
		want = append(want, p.Name+" on "+p.Spec.NodeName)
	}
	if slices.Sort(want); len(got) != 2 || !slices.Equal(got, want) || pods.Kind != "PodList" {
		t.Errorf("%s of %v, want %v", pods.Kind, got, want)
	}

	var m batchv1.Job
	u.object(f.Context(), &m, f.NS, "job", "mirror")
	if mirror.HubUID(&m) != hub.UID || m.Kind != "Job" || m.UID == hub.UID || m.Status.Active != 2 {
		t.Errorf("mirror: %+v", m)
	}

	var events corev1.EventList
	u.object(f.Context(), &events, f.NS, "job", "events")
	reasons := map[string]int{}
	for _, e := range events.Items {
		reasons[e.InvolvedObject.Kind+" "+e.Reason]++
	}
	if reasons["Job SuccessfulCreate"] == 0 || reasons["Pod Scheduled"] != 2 || events.Kind != "EventList" {
		t.Errorf("%s: %v", events.Kind, reasons)
	}
	if answer, _ := u.headers(f.Context(), f.NS, "job", "pods", nil); answer.Get(subresources.WorkerHeader) != "w1" {
		t.Errorf("headers %v", answer)
	}
	if raw := f.Kubectl(f.Hub, "", "get", "--raw", path(f.NS, "job", "log")); !strings.Contains(raw, "/main started\n") {
		t.Errorf("kubectl get --raw: %q", raw)
	}
}

func saysWhyThereIsNothing(t *testing.T) {
	f := ferrytest.For(t)
	u := reader(f, t)
	f.Submit("suspended", rigtest.Suspended())
	f.Submit("nowhere", ferrytest.OnWorker("no-such-worker"))
	f.Create(f.Hub, rigtest.Job(f.NS, "plain"))
	ctx := f.Context()
	u.refused(ctx, http.StatusNotFound, `"missing" not found`, f.NS, "missing", "log")
	u.refused(ctx, http.StatusConflict, "is suspended", f.NS, "suspended", "log")
	u.refused(ctx, http.StatusConflict, "isn't placed on a worker yet: kubectl jobferry why nowhere -n "+f.NS, f.NS, "nowhere", "pods")
	u.refused(ctx, http.StatusBadRequest, "isn't Jobferry's", f.NS, "plain", "mirror")
	if _, err := f.Hub.Kubectl(ctx, "", "get", "--raw", path(f.NS, "plain", "nonsense")); err == nil || !strings.Contains(err.Error(), "events, exec, log, mirror, pods") {
		t.Errorf("nonsense: %v", err)
	}

	f.Submit("slow", ferrytest.OnWorker("w1"), rigtest.PodLabel(rig.LabelStartAfter, "1h"))
	f.LeaveWorker("w1")
	f.Until(rig.Objects(f.Cluster("w1").Client().CoreV1().RESTClient(), "pods", f.NS), func(o runtime.Object) bool {
		p, ok := o.(*corev1.Pod)
		return ok && p.Spec.NodeName != ""
	})
	u.refused(ctx, http.StatusBadRequest, "ContainerCreating", f.NS, "slow", "log")
	u.refused(ctx, http.StatusNotFound, `has no Pod of index 5 in worker "w1"`, f.NS, "slow", "log", "index=5")
	u.refused(ctx, http.StatusBadRequest, "previous terminated container", f.NS, ended(f, "one"), "log", "previous=true")
}

func hidesOthersPods(t *testing.T) {
	f := ferrytest.For(t)
	f.Submit("mine", ferrytest.OnWorker("w1"), rigtest.RunForever())
	f.LeaveWorker("w1")
	m := f.MirrorUntil("w1", "mine", rigtest.Running(1))
	worker := f.Cluster("w1")
	// A Pod that has the labels of the Job's Pods, but isn't the Job's.
	stranger := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "stranger", Namespace: f.NS, Labels: m.Spec.Template.Labels},
		Spec:       m.Spec.Template.Spec,
	}
	stranger.Labels["extra"] = "yes"
	stranger.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "x", Controller: new(bool)}}
	*stranger.OwnerReferences[0].Controller = true
	if _, err := worker.Client().CoreV1().Pods(f.NS).Create(f.Context(), stranger, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	u := reader(f, t).grant(f, f.NS, "get: jobs/pods, jobs/log", "get, create: jobs/exec")
	u.refused(f.Context(), http.StatusNotFound, `Job "mine" has no Pod "stranger" in worker "w1"`, f.NS, "mine", "log", "pod=stranger")
	u.refused(f.Context(), http.StatusNotFound, `Job "mine" has no Pod "nobody" in worker "w1"`, f.NS, "mine", "log", "pod=nobody")
	u.cut(u.exec(f.Context(), nil, nil, f.NS, "mine", "pod=stranger", "command=true"), `no Pod "stranger"`)
	var pods corev1.PodList
	u.object(f.Context(), &pods, f.NS, "mine", "pods")
	if len(pods.Items) != 1 || pods.Items[0].Name == "stranger" {
		t.Errorf("%d Pods", len(pods.Items))
	}
}

func describesItself(t *testing.T) {
	f := ferrytest.For(t)
	u := login(f, t, "anybody")
	if resources := f.Kubectl(f.Hub, "", "get", "--raw", "/apis/subresources.jobferry.dev/v1alpha1"); !strings.Contains(resources, `"jobs/log"`) {
		t.Errorf("resources: %s", resources)
	}
	// A hub that can't discover an aggregated API says so in each of these.
	for _, args := range [][]string{{"api-resources"}, {"api-versions"}, {"get", "jobs", "-n", f.NS}} {
		if out := f.Kubectl(f.Hub, "", args...); strings.Contains(out, "error") {
			t.Errorf("kubectl %v: %s", args, out)
		}
	}
	wanted := "apis/subresources.jobferry.dev/v1alpha1"
	found := func() bool {
		index, err := u.api.Get().AbsPath("/openapi/v3").DoRaw(f.Context())
		return err == nil && strings.Contains(string(index), wanted)
	}
	for !found() {
		select {
		case <-time.After(200 * time.Millisecond): // the hub asks for it now and then, and there's nothing to watch
		case <-f.Context().Done():
			t.Fatal("the hub's OpenAPI has no " + wanted)
		}
	}
	document, err := u.api.Get().AbsPath("/openapi/v3/" + wanted).DoRaw(f.Context())
	if err != nil || !strings.Contains(string(document), "tailLines") {
		t.Errorf("OpenAPI: %v, %.200s", err, document)
	}
}
