package hostile_test

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/memstats"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

var (
	jobsOf  = flag.Int("jobs", 30, "Jobs of each turn of TestAllAtOnce")
	flatFor = flag.Duration("flat", 20*time.Second, "how long TestAllAtOnce watches the manager's memory")
)

// maxResident is what the manager may take of the machine's memory.
const maxResident = 300 << 20

// maxGrowth is how much more of its memory may be in use at the end than at first: what one object
// of a worker may take.
const maxGrowth = 4 << 20

// adversary does in its worker what it can, until it is stopped.
type adversary struct {
	*ferrytest.Ferry
	t       *testing.T
	cluster *rig.Cluster
	proxy   *tamperer
	origin  string
	cancel  context.CancelFunc
	done    chan struct{}
}

// TestAllAtOnce runs Jobs on the workers w1 and w2, by turns without and with the third worker,
// whose adversary has forged mirrors of each of them, large Jobs with the hub's label, a node
// without an end, changes without an end, and answers that hang, fail or never end. The Jobs end
// all the same, and the manager's memory stays small and flat. It logs how long the turns take: see
// `make hostile`.
func TestAllAtOnce(t *testing.T) {
	f := ferrytest.For(t)
	f.Allow(10*time.Minute + *flatFor)
	profiles, err := rig.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	manager := f.StartManager("--pprof-bind-address=" + profiles)
	for _, worker := range []string{"w1", "w2", hostile} {
		f.LeaveWorker(worker)
	}
	f.Register("w1", "w2")
	a := begins(t, f)
	defer a.ends()
	var without, with time.Duration
	for turn := range 2 {
		without += a.runJobs(fmt.Sprintf("without-%d", turn))
		f.RegisterSecret(hostile, map[string][]byte{v1alpha1.KubeconfigKey: a.proxy.kubeconfig(t)}, nil)
		f.WorkerUntil(hostile, func(w *v1alpha1.WorkerCluster) bool { return len(w.Status.Conditions) > 0 })
		// its adversary would keep the mirrors for ever
		f.SetWorker(hostile, `{"removalPolicy":"Orphan"}`)
		with += a.runJobs(fmt.Sprintf("with-%d", turn))
		if turn == 0 {
			f.Unregister(hostile)
			f.WorkerGone(hostile)
		}
	}
	resident, heap := a.watch(manager, profiles)
	f.ReplaceSecret(hostile, f.Cluster(hostile).ProxyKubeconfigBytes()) // for other tests
	t.Logf("%d Jobs on two workers: %s without the hostile one, %s with it (%.2f times); resident: %d MiB at most; heap in use, in MiB: %d",
		2**jobsOf, without.Round(time.Millisecond), with.Round(time.Millisecond), with.Seconds()/without.Seconds(), resident>>20, mebibytes(heap))
	if resident > maxResident {
		t.Errorf("the manager takes %d MiB, want %d at most", resident>>20, maxResident>>20)
	}
	half := len(heap) / 2 // each has samples without a large answer under way
	if first, last := slices.Min(heap[:half]), slices.Min(heap[half:]); last > first+maxGrowth {
		t.Errorf("what the manager's memory holds grows from %d to %d MiB: %d", first>>20, last>>20, mebibytes(heap))
	}
}

// begins has the adversary act from now on. Its load on the machine is the same in all turns.
func begins(t *testing.T, f *ferrytest.Ferry) *adversary {
	t.Helper()
	system, err := f.Hub.Client().CoreV1().Namespaces().Get(f.Context(), metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	f.NamespaceIn(hostile)
	ctx, cancel := context.WithCancel(f.Context())
	a := &adversary{
		Ferry: f, t: t, cluster: f.Cluster(hostile), origin: string(system.UID), cancel: cancel, done: make(chan struct{}),
		proxy: newTamperer(t, f.Cluster(hostile).RESTConfig()),
	}
	for i := range 40 {
		a.makes(fmt.Sprintf("large-%d", i), "made-up", func(j *batchv1.Job) {
			j.Spec.Template.Annotations = map[string]string{"example.org/filling": strings.Repeat("x", 200<<10)}
			j.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "FILLING", Value: strings.Repeat("x", 800<<10)}}
			j.Spec.Suspend = ptr.To(true)
		})
	}
	for i := range 40 {
		a.makes(fmt.Sprintf("restless-%d", i), "made-up", func(j *batchv1.Job) { j.Spec.Suspend = ptr.To(true) })
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "endless"}}
	node.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1E"), corev1.ResourcePods: resource.MustParse("1E")}
	if _, err := a.cluster.Client().CoreV1().Nodes().Create(f.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	go a.acts(ctx)
	return a
}

// acts changes its Jobs, and how its API server answers, again and again.
func (a *adversary) acts(ctx context.Context) {
	defer close(a.done)
	hangs := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	fails := func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, strings.Repeat("\x1b[2J", 1<<20), http.StatusInternalServerError)
	}
	job := `{"type":"ADDED","object":{"kind":"Job","apiVersion":"batch/v1","metadata":{"name":"`
	tricks := []map[string]http.HandlerFunc{
		nil,
		{"get kube-system": zipBomb},
		{"watch jobs": endless(job, "x"), "get jobs": endless(`{"kind":"JobList","apiVersion":"batch/v1","items":[`, `{"metadata":{"name":"j"}},`)},
		{"get kube-system": hangs},
		nil,
		{"get kube-system": endless("", " ")},
		{"watch pods": endless("{", " "), "watch nodes": fails},
		{"get kube-system": fails},
	}
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for n := 0; ; n++ {
		if n%10 == 0 {
			a.proxy.set(tricks[n/10%len(tricks)])
		}
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"example.org/n":"%d","jobferry.dev/carry":"ConfigMap,Secret"}}}`, n)
		name := fmt.Sprintf("restless-%d", n%40)
		// it may have been deleted
		_, _ = a.cluster.Client().BatchV1().Jobs(a.NS).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
		select {
		case <-tick.C:
		case <-ctx.Done():
			a.proxy.set(nil)
			return
		}
	}
}

// makes makes a Job that looks like a mirror, and can't be deleted.
func (a *adversary) makes(name, hubUID string, change rigtest.Option) {
	job := rigtest.Job(a.NS, name, change, func(j *batchv1.Job) {
		j.Labels = map[string]string{v1alpha1.LabelOrigin: a.origin}
		j.Annotations = map[string]string{v1alpha1.AnnotationHubUID: hubUID, "jobferry.dev/carry": "ConfigMap,Secret,ServiceAccount"}
		j.Finalizers = []string{foreign}
	})
	_, err := a.cluster.Client().BatchV1().Jobs(a.NS).Create(a.Context(), job, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		a.t.Error(err)
	}
}

// runJobs runs Jobs on w1 and w2, each of which the adversary has a mirror of, and returns how long
// they took to end.
func (a *adversary) runJobs(prefix string) time.Duration {
	a.t.Helper()
	asleep := func(j *batchv1.Job) { j.Spec.Suspend = ptr.To(true) }
	var names []string
	for i := range *jobsOf {
		names = append(names, fmt.Sprintf("%s-%d", prefix, i))
		a.makes(names[i], "made-up", asleep)
	}
	began := time.Now()
	for _, name := range names {
		a.Submit(name, ferrytest.WithSelector("name in (w1,w2)"), rigtest.RunFor(time.Second))
	}
	for _, name := range names {
		a.HubJobUntil(name, rigtest.Complete)
	}
	took := time.Since(began)
	for _, name := range names {
		a.Delete(name, metav1.DeletePropagationBackground)
	}
	for _, name := range names {
		a.HubJobGone(name)
	}
	return took
}

// watch samples the memory of the manager while Jobs come and go: what it takes of the machine's at
// most, and what it holds after collections. The former also depends on when the last collections
// were, and on what the adversary sent meanwhile: it doesn't show whether it grows.
func (a *adversary) watch(manager *ferrytest.Process, profiles string) (resident int64, heap []int64) {
	a.t.Helper()
	for end := time.Now().Add(*flatFor); time.Now().Before(end) || len(heap) < 6; {
		name := fmt.Sprintf("steady-%d", len(heap))
		a.Submit(name, ferrytest.WithSelector("name in (w1,w2)"), rigtest.RunFor(time.Second))
		a.HubJobUntil(name, rigtest.Complete)
		a.Delete(name, metav1.DeletePropagationBackground)
		resident = max(resident, manager.Resident())
		stats, err := memstats.Read(a.Context(), profiles)
		if err != nil {
			a.t.Fatal(err)
		}
		heap = append(heap, stats["HeapAlloc"])
	}
	return resident, heap
}

// ends stops the adversary, and removes what it has made.
func (a *adversary) ends() {
	a.cancel()
	<-a.done
	// the test's own may have ended
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	jobs, err := a.cluster.Client().BatchV1().Jobs(a.NS).List(ctx, metav1.ListOptions{})
	if err != nil {
		a.t.Error(err)
		return
	}
	for i := range jobs.Items {
		_, _ = a.cluster.Client().BatchV1().Jobs(a.NS).Patch(ctx, jobs.Items[i].Name, types.MergePatchType,
			[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}) // it may be gone
	}
	if err := a.cluster.Client().CoreV1().Nodes().Delete(ctx, "endless", metav1.DeleteOptions{}); err != nil {
		a.t.Error(err)
	}
}

func mebibytes(all []int64) (m []int64) {
	for _, bytes := range all {
		m = append(m, bytes>>20)
	}
	return m
}
