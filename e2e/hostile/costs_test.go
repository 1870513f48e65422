package hostile_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// spender sends what costs the manager much: as a tenant of the hub, and as the admin of the
// hostile worker. One in peace costs the API servers as much, and the manager nothing: its
// namespace isn't dispatched, its worker isn't registered, and it asks for Jobs themselves.
type spender struct {
	*ferrytest.Ferry
	t       *testing.T
	inPeace bool
	tenant  string
	cluster *rig.Cluster
	// address of the aggregated API, which Pods of the hub's network reach.
	address string

	mu    sync.Mutex
	count map[string]int
}

// cost is sent again and again. What fails counts for nothing.
type cost struct {
	name  string
	every time.Duration
	send  func(ctx context.Context, n int) error
}

// newSpender makes what stays.
func newSpender(t *testing.T, f *ferrytest.Ferry, inPeace bool) *spender {
	t.Helper()
	labels := ferrytest.Dispatched
	if inPeace {
		labels = nil
	}
	s := &spender{
		Ferry: f, t: t, inPeace: inPeace, tenant: f.LabelledNamespace(labels, f.Hub), cluster: f.Cluster(hostile), count: map[string]int{},
	}
	port := f.Kubectl(f.Hub, "", "get", "apiservice", "v1alpha1.subresources.jobferry.dev", "-o", "jsonpath={.spec.service.port}")
	s.address = net.JoinHostPort("127.0.0.1", port)
	s.makeTenant()
	return s
}

// register has the manager know the hostile worker.
func (s *spender) register() {
	s.t.Helper()
	proxy := newTamperer(s.t, s.cluster.RESTConfig())
	proxy.set(map[string]http.HandlerFunc{"get pods": commandsAsNames})
	s.RegisterSecret(hostile, map[string][]byte{v1alpha1.KubeconfigKey: proxy.kubeconfig(s.t)}, map[string]string{"name": hostile})
	s.WorkerUntil(hostile, func(w *v1alpha1.WorkerCluster) bool { return len(w.Status.Conditions) > 0 })
	s.SetWorker(hostile, `{"capacity":"Autoscaled","removalPolicy":"Orphan"}`)
	s.SetWorker("w1", `{"carry":["ConfigMap"]}`)
	s.JobUntil(s.Hub, s.tenant, "victim", func(j *batchv1.Job) bool { return j.Annotations[v1alpha1.AnnotationCluster] == hostile })
}

// leave removes the tenant's Jobs.
func (s *spender) leave() {
	s.t.Helper()
	s.Kubectl(s.Hub, "", "delete", "jobs", "--all", "-n", s.tenant, "--wait=false")
}

// spends sends all costs side by side until it's told to stop, and each once at least.
func (s *spender) spends() (stop func()) {
	ctx, cancel := context.WithCancel(s.Context())
	stopping := make(chan struct{})
	var all sync.WaitGroup
	for _, c := range s.costs() {
		all.Go(func() { s.repeat(ctx, c, stopping) })
	}
	return func() {
		close(stopping)
		all.Wait()
		cancel()
	}
}

func (s *spender) repeat(ctx context.Context, c cost, stopping <-chan struct{}) {
	tick := time.NewTicker(c.every)
	defer tick.Stop()
	for n := 0; ; n++ {
		err := c.send(ctx, n)
		s.mu.Lock()
		if err == nil {
			s.count[c.name]++
		}
		sent := s.count[c.name]
		s.mu.Unlock()
		if err != nil {
			s.t.Logf("%s: %v", c.name, err) // a busy API server refuses
		}
		if ctx.Err() != nil {
			s.t.Errorf("%s was sent %d times", c.name, sent)
			return
		}
		select {
		case <-stopping:
			if sent > 0 {
				return
			}
			<-tick.C
		case <-tick.C:
		}
	}
}

// sent is how often each cost was.
func (s *spender) sent() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.count)
}

func (s *spender) costs() []cost {
	return []cost{
		{"a status of the cluster-autoscaler", 2 * time.Second, s.writesStatus},
		{"tables of large Jobs", 10 * time.Second, s.listsTables},
		{"a change of what very many references name", time.Second, s.changesReferenced},
		{"names that are commands", time.Second, s.asksForPods},
		{"changes for which Jobs are judged anew", 500 * time.Millisecond, s.changesNodes},
		{"Jobs whose Pods can't start", 2 * time.Second, s.submitsStuck},
		{"idle connections", 500 * time.Millisecond, s.connects},
	}
}

// nodes is how many the hostile worker makes up.
const nodes = 100

// makeWorker has the hostile worker have many nodes, Pods of many labels, and a class of devices
// whose selector never returns.
func (s *spender) makeWorker() {
	s.t.Helper()
	client := s.cluster.Client().CoreV1()
	ns := s.Namespace(s.cluster)
	for i := range nodes {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("made-up-%d", i)}}
		node.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourcePods: resource.MustParse("10")}
		s.must(client.Nodes().Create(s.Context(), node, metav1.CreateOptions{}))
		// it's in nobody's way
		s.t.Cleanup(func() { _ = client.Nodes().Delete(context.Background(), node.Name, metav1.DeleteOptions{}) })
	}
	labels := map[string]string{}
	for i := range 30 {
		labels[fmt.Sprintf("example.org/%050d", i)] = strings.Repeat("x", 60)
	}
	for i := range 200 {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("many-labels-", i), Labels: labels}}
		pod.Spec = corev1.PodSpec{NodeName: fmt.Sprintf("made-up-%d", i%nodes), Containers: []corev1.Container{{Name: "main", Image: "example.org/main"}}}
		s.must(client.Pods(ns).Create(s.Context(), pod, metav1.CreateOptions{}))
	}
	s.Apply(s.cluster, "", `
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: endless}
spec: {extendedResourceName: example.org/endless, selectors: [{cel: {expression: 'quantity("1e100000000").isGreaterThan(quantity("1"))'}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: endless}
spec: {driver: endless.example.org, nodeName: made-up-0, pool: {name: made-up-0, generation: 1, resourceSliceCount: 1}, devices: [{name: gpu-0}]}`)
	s.t.Cleanup(func() {
		// the test's own context has ended
		_, _ = s.cluster.Kubectl(context.Background(), "", "delete", "deviceclass/endless", "resourceslice/endless")
	})
}

// commandsAsNames are Pods that a shell or a terminal shouldn't see.
func commandsAsNames(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	// fails with the connection
	_, _ = w.Write([]byte(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[` +
		`{"metadata":{"name":"$(touch${IFS}file)","namespace":"x","uid":"1"}},{"metadata":{"name":"\u001b[2J","namespace":"x","uid":"2"}}]}`))
}

// must fails the test if an object wasn't created.
func (s *spender) must(_ any, err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// makeTenant submits the tenant's Jobs that stay.
func (s *spender) makeTenant() {
	s.t.Helper()
	s.Apply(s.Hub, s.tenant, "{apiVersion: v1, kind: ConfigMap, metadata: {name: referenced}, data: {n: '0'}}")
	for i := range 8 {
		s.submit(fmt.Sprint("large-", i), rigtest.Suspended(), large(1_200_000))
	}
	for i := range 5 {
		s.submit(fmt.Sprint("refers-", i), ferrytest.OnWorker("w1"), refers(20_000), rigtest.RunForever())
	}
	s.submit("victim", ferrytest.OnWorker(hostile), rigtest.RunForever())
	for name, option := range judgedLong() {
		s.submit(name, option)
	}
}

// submit creates a Job that may go to any worker.
func (s *spender) submit(name string, options ...rigtest.Option) {
	s.t.Helper()
	s.must(s.Hub.Client().BatchV1().Jobs(s.tenant).Create(s.Context(), s.job(name, options...), metav1.CreateOptions{}))
}

func (s *spender) job(name string, options ...rigtest.Option) *batchv1.Job {
	return rigtest.Job(s.tenant, name, append([]rigtest.Option{rigtest.ManagedBy(v1alpha1.ManagedByDispatcher)}, options...)...)
}

// refers makes a Pod that takes its environment from so many ConfigMaps, one of which there is.
func refers(n int) rigtest.Option {
	return func(j *batchv1.Job) {
		c := &j.Spec.Template.Spec.Containers[0]
		for i := range n {
			name := fmt.Sprint("none-", i)
			if i == 0 {
				name = "referenced"
			}
			c.EnvFrom = append(c.EnvFrom, corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: name}, Optional: ptr.To(true),
			}})
		}
	}
}

// judgedLong are Jobs of which each comparison with a node, a Pod or a device is one of very many.
// None has room anywhere, so all of them wait in line.
func judgedLong() map[string]rigtest.Option {
	node := func(terms ...corev1.NodeSelectorTerm) rigtest.Option {
		return func(j *batchv1.Job) {
			j.Spec.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms},
			}}
		}
	}
	in := func(key string, values ...string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
	}
	var terms []corev1.NodeSelectorTerm
	for i := range 25_000 {
		terms = append(terms, corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{in("a", fmt.Sprint(i))}})
	}
	var values corev1.NodeSelectorTerm
	for i := range 8 {
		var of []string
		for k := range 15_000 {
			of = append(of, fmt.Sprint(k))
		}
		values.MatchExpressions = append(values.MatchExpressions, in(fmt.Sprint("key-", i), of...))
	}
	return map[string]rigtest.Option{
		"terms":  node(terms...),
		"values": node(values),
		"claims": func(j *batchv1.Job) {
			for i := range 8_000 {
				j.Spec.Template.Spec.ResourceClaims = append(j.Spec.Template.Spec.ResourceClaims, corev1.PodResourceClaim{
					Name: fmt.Sprint("c", i), ResourceClaimTemplateName: ptr.To("none"),
				})
			}
		},
		"endless": func(j *batchv1.Job) {
			one := corev1.ResourceList{"example.org/endless": resource.MustParse("1")}
			j.Spec.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: one, Limits: one}
		},
		"labels": func(j *batchv1.Job) {
			j.Spec.Template.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
					TopologyKey: corev1.LabelHostname, NamespaceSelector: &metav1.LabelSelector{},
					LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"none": "at-all"}},
				}},
			}}
		},
	}
}

// writesStatus writes one key very often, and very many keys, by turns.
func (s *spender) writesStatus(ctx context.Context, n int) error {
	text := strings.Repeat("a:\n", 6_000)
	if n%2 == 1 {
		var keys strings.Builder
		for i := range 60_000 {
			fmt.Fprintf(&keys, "k%d:\n", i)
		}
		text = keys.String()
	}
	maps := s.cluster.Client().CoreV1().ConfigMaps(metav1.NamespaceSystem)
	status := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "cluster-autoscaler-status"}, Data: map[string]string{"status": text}}
	_, err := maps.Update(ctx, status, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		// it's in nobody's way
		s.t.Cleanup(func() { _ = maps.Delete(context.Background(), status.Name, metav1.DeleteOptions{}) })
		_, err = maps.Create(ctx, status, metav1.CreateOptions{})
	}
	return err
}

// listsTables asks for the table of all large Jobs, 20 times at once.
func (s *spender) listsTables(ctx context.Context, _ int) error {
	errs := make(chan error, 20)
	for range cap(errs) {
		go func() {
			path := "/apis/subresources.jobferry.dev/v1alpha1/namespaces/" + s.tenant + "/dispatchedjobs"
			if s.inPeace {
				path = "/apis/batch/v1/namespaces/" + s.tenant + "/jobs"
			}
			errs <- s.get(ctx, path).Error()
		}()
	}
	var failed error
	for range cap(errs) {
		if err := <-errs; err != nil {
			failed = err
		}
	}
	return failed
}

func (s *spender) get(ctx context.Context, path string) rest.Result {
	return s.Hub.Client().BatchV1().RESTClient().Get().AbsPath(path).SetHeader("Accept", "application/vnd.kubernetes.protobuf, application/json").Do(ctx)
}

func (s *spender) changesReferenced(ctx context.Context, n int) error {
	_, err := s.Hub.Client().CoreV1().ConfigMaps(s.tenant).Patch(ctx, "referenced", types.MergePatchType,
		fmt.Appendf(nil, `{"data":{"n":"%d"}}`, n), metav1.PatchOptions{})
	return err
}

// asksForPods asks for the Pods of a Job of the worker, and gets none of its names.
func (s *spender) asksForPods(ctx context.Context, _ int) error {
	if s.inPeace {
		return nil
	}
	body, err := s.get(ctx, "/apis/subresources.jobferry.dev/v1alpha1/namespaces/"+s.tenant+"/jobs/victim/pods").Raw()
	if bytes.Contains(body, []byte("touch")) {
		s.t.Errorf("names that are commands reach a user: %s", body)
	}
	return err
}

// changesNodes changes a node of the worker: Jobs that wait may fit by now.
func (s *spender) changesNodes(ctx context.Context, n int) error {
	_, err := s.cluster.Client().CoreV1().Nodes().Patch(ctx, fmt.Sprintf("made-up-%d", n%nodes), types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"labels":{"example.org/n":"%d"}}}`, n), metav1.PatchOptions{})
	return err
}

// submitsStuck submits Jobs like those of others whose Pods never start, to all workers.
func (s *spender) submitsStuck(ctx context.Context, n int) error {
	if n >= 20 {
		return nil
	}
	_, err := s.Hub.Client().BatchV1().Jobs(s.tenant).Create(ctx, s.job(fmt.Sprint("stuck-", n), func(j *batchv1.Job) {
		j.Spec.Template.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.org/never"}}
	}), metav1.CreateOptions{})
	return err
}

// connects opens connections to the aggregated API that say nothing, and keeps them.
func (s *spender) connects(ctx context.Context, n int) error {
	if n >= 40 || s.inPeace {
		return nil
	}
	for range 40 {
		anybody := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // on loopback
		c, err := (&tls.Dialer{Config: anybody}).DialContext(ctx, "tcp", s.address)
		if err != nil {
			return err
		}
		context.AfterFunc(ctx, func() { _ = c.Close() })
	}
	return nil
}
