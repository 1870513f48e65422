package subresources_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
)

// divide makes a Job that runs in two workers, as a dispatcher would leave it: the indexes 0 and 1
// are placed on w1, 2 and 3 on w2. Its mirrors have no Pods, and no controller.
func divide(f *ferrytest.Ferry, t *testing.T) map[string]*batchv1.Job {
	t.Helper()
	placement := shards.Placement{}
	for i, worker := range []string{"w1", "w2"} {
		amount, err := shards.ParseAmount(fmt.Sprintf("%d,%d", 2*i, 2*i+1), true)
		if err != nil {
			t.Fatal(err)
		}
		placement.Shards = append(placement.Shards, shards.Shard{Worker: worker, Amount: amount})
	}
	f.Submit("wide", rigtest.Indexed(4), func(j *batchv1.Job) {
		j.Annotations[v1alpha1.AnnotationMaxClusters] = v1alpha1.MaxClustersAll
	})
	hub := f.Keep("wide", placement.Kept())
	system, err := f.Hub.Client().CoreV1().Namespaces().Get(f.Context(), metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	mirrors := map[string]*batchv1.Job{}
	for _, worker := range []string{"w1", "w2"} {
		f.NamespaceIn(worker)
		mirrors[worker] = f.Create(f.Cluster(worker), rigtest.Job(f.NS, "wide", rigtest.Indexed(4), rigtest.RunForever(), rigtest.ManagedBy("example.org/by-hand"),
			mirrorOf(hub.UID, string(system.UID))))
	}
	return mirrors
}

func mirrorOf(hub types.UID, origin string) rigtest.Option {
	return func(j *batchv1.Job) {
		j.Labels = map[string]string{v1alpha1.LabelOrigin: origin}
		j.Annotations = map[string]string{v1alpha1.AnnotationHubUID: string(hub)}
	}
}

// runPod runs a Pod of an index as the Job controller of a worker would.
func runPod(f *ferrytest.Ferry, t *testing.T, worker, name string, index int, mirror *batchv1.Job) {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: *mirror.Spec.Template.ObjectMeta.DeepCopy(), Spec: mirror.Spec.Template.Spec}
	pod.Name, pod.Namespace = name, f.NS
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, batchv1.JobCompletionIndexAnnotation, fmt.Sprint(index))
	metav1.SetMetaDataLabel(&pod.ObjectMeta, batchv1.JobCompletionIndexAnnotation, fmt.Sprint(index))
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(mirror, batchv1.SchemeGroupVersion.WithKind("Job"))}
	c := f.Cluster(worker)
	if _, err := c.Client().CoreV1().Pods(f.NS).Create(f.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.Until(rig.Objects(c.Client().CoreV1().RESTClient(), "pods", f.NS), func(o runtime.Object) bool {
		p, ok := o.(*corev1.Pod)
		return ok && p.Name == name && p.Status.Phase == corev1.PodRunning
	})
}

// podsOf lists the Pods of the Job wide as "worker/Pod", and the warnings.
func podsOf(f *ferrytest.Ferry, u *user) (names, warnings []string) {
	u.t.Helper()
	var list struct {
		corev1.PodList
		Warnings []string `json:"warnings"`
	}
	u.check(json.Unmarshal([]byte(u.must(f.Context(), f.NS, "wide", "pods")), &list))
	for i := range list.Items {
		names = append(names, list.Items[i].Annotations[v1alpha1.AnnotationCluster]+"/"+list.Items[i].Name)
	}
	return names, list.Warnings
}

// The Pods, logs and commands of a Job in two workers are those of one Job; what is in a worker
// that hangs is reported as missing, and no other worker passes for it.
func TestJobInTwoWorkers(t *testing.T) {
	f := ferrytest.For(t)
	m := f.RunManager()
	f.Register("w1", "w2")
	serve(f, t, quick)
	m.Stop() // the Job is placed by hand
	mirrors := divide(f, t)
	runPod(f, t, "w1", "wide-0-a", 0, mirrors["w1"])
	runPod(f, t, "w2", "wide-2-a", 2, mirrors["w2"])
	runPod(f, t, "w1", "wide-3-a", 3, mirrors["w1"]) // it has run there before
	u := reader(f, t).grant(f, f.NS, "get: jobs/pods, jobs/log, jobs/events, jobs/mirror", "get, create: jobs/exec")
	ctx := f.Context()

	want := []string{"w1/wide-0-a", "w1/wide-3-a", "w2/wide-2-a"}
	if got, warnings := podsOf(f, u); !slices.Equal(got, want) || warnings != nil {
		t.Errorf("Pods %v, warnings %v", got, warnings)
	}
	for index, line := range map[int]string{0: "wide-0-a/main started, index 0", 2: "wide-2-a/main started, index 2", 3: "wide-3-a/main started, index 3"} {
		if got := u.must(ctx, f.NS, "wide", "log", fmt.Sprintf("index=%d", index)); !strings.Contains(got, line) {
			t.Errorf("the log of index %d: %q", index, got)
		}
	}
	u.refused(ctx, http.StatusNotFound, `has no Pod of index 1 in worker "w1"; Job "wide" has no Pod of index 1 in worker "w2"`, f.NS, "wide", "log", "index=1")
	var out bytes.Buffer
	u.check(u.exec(ctx, nil, &out, f.NS, "wide", "index=2", "command=sh", "command=-c", "command=echo index $JOB_COMPLETION_INDEX"))
	if out.String() != "index 2\n" {
		t.Errorf("the command in index 2: %q", out.String())
	}
	u.refused(ctx, http.StatusBadRequest, "has a mirror in each of w1, w2; name one of them", f.NS, "wide", "mirror")
	if got := u.must(ctx, f.NS, "wide", "mirror", "worker=w2"); !strings.Contains(got, string(mirrors["w2"].UID)) {
		t.Errorf("the mirror in w2: %s", got)
	}
	events := u.must(ctx, f.NS, "wide", "events")
	for _, text := range []string{"assigned " + f.NS + "/wide-0-a", "assigned " + f.NS + "/wide-2-a"} {
		if !strings.Contains(events, text) {
			t.Errorf("no event %q in %s", text, events)
		}
	}

	runPod(f, t, "w1", "wide-2-a", 2, mirrors["w1"]) // the worker w1 would like to be w2
	u.refused(ctx, http.StatusBadRequest, `each of the workers "w1", "w2" has a Pod "wide-2-a"`, f.NS, "wide", "log", "pod=wide-2-a")
	u.must(ctx, f.NS, "wide", "log", "pod=wide-2-a", "worker=w2")
	f.Cluster("w2").Proxy().BlackHole()
	t.Cleanup(f.Cluster("w2").Proxy().Heal)
	want = []string{"w1/wide-0-a", "w1/wide-2-a", "w1/wide-3-a"}
	if got, warnings := podsOf(f, u); !slices.Equal(got, want) || len(warnings) != 1 || !strings.Contains(warnings[0], `worker "w2" doesn't answer in time`) {
		t.Errorf("Pods %v, warnings %v", got, warnings)
	}
	u.must(ctx, f.NS, "wide", "log", "index=0")
	u.refused(ctx, http.StatusGatewayTimeout, `worker "w2" doesn't answer in time`, f.NS, "wide", "log", "index=2")
	u.cut(u.exec(ctx, nil, nil, f.NS, "wide", "pod=wide-2-a", "command=true"), `whether it is the only one isn't known`)
}
