package clusters

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/clusters"
	"github.com/jobferry/jobferry/pkg/placement"
)

const userAgent = "clusters-test"

// hub is a hub with a manager that has nothing but the clusters in it.
type hub struct {
	*rigtest.Fixture
	t         *testing.T
	cluster   *rig.Cluster
	client    client.Client
	api       rest.Interface
	namespace string
	options   clusters.Options
	registry  *clusters.Registry
	metrics   *prometheus.Registry
	placed    *placed
	stop      func()
}

// newHub starts a manager; it ends with the test, and so do the WorkerClusters.
func newHub(t *testing.T, changes ...func(*clusters.Options)) *hub {
	t.Helper()
	h := &hub{Fixture: rigtest.For(t), t: t, placed: &placed{}, metrics: prometheus.NewRegistry()}
	h.cluster = h.Cluster("hub")
	h.installCRD()
	h.makeClients()
	h.namespace = h.Namespace(h.cluster)
	system, err := h.cluster.Client().CoreV1().Namespaces().Get(h.Context(), metav1.NamespaceSystem, metav1.GetOptions{})
	h.check(err)
	h.options = clusters.Options{
		Namespace: h.namespace, Origin: v1alpha1.Origin(h.namespace), HubUID: system.UID,
		ProbeInterval: time.Second, ProbeTimeout: time.Second, RetryDelay: 50 * time.Millisecond,
		StatusInterval: 200 * time.Millisecond, OrphanGrace: 2 * time.Second,
		Placements: h.placed, Metrics: h.metrics,
	}
	for _, change := range changes {
		change(&h.options)
	}
	h.start()
	t.Cleanup(h.clear)
	return h
}

func (h *hub) installCRD() {
	h.t.Helper()
	crd, err := os.ReadFile("../../config/crd/jobferry.dev_workerclusters.yaml")
	h.check(err)
	h.Kubectl(h.cluster, string(crd), "apply", "--server-side", "-f", "-")
	h.AwaitCRDs(h.cluster, "workerclusters.jobferry.dev")
}

func (h *hub) makeClients() {
	h.t.Helper()
	config := h.cluster.RESTConfig()
	var err error
	h.client, err = client.New(config, client.Options{Scheme: scheme()})
	h.check(err)
	config.GroupVersion = &v1alpha1.GroupVersion
	config.APIPath = "/apis"
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme()).WithoutConversion()
	h.api, err = rest.RESTClientFor(config)
	h.check(err)
}

func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err) // types of one's own
		}
	}
	return s
}

// start starts the manager, for the first time or again.
func (h *hub) start() {
	h.t.Helper()
	hubConfig := h.cluster.RESTConfig()
	hubConfig.UserAgent = userAgent
	again := true
	mgr, err := ctrl.NewManager(hubConfig, ctrl.Options{
		Scheme:     scheme(),
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: &again},
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
			&corev1.Secret{}: {Namespaces: map[string]cache.Config{h.namespace: {LabelSelector: clusters.RegistrationSelector()}}},
		}},
	})
	h.check(err)
	h.registry = clusters.NewRegistry(h.options)
	h.registry.AddListener(h.placed)
	h.check(h.registry.SetupWithManager(mgr))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	h.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			h.t.Errorf("the manager ended with %v", err)
		}
	})
	h.t.Cleanup(h.stop)
}

// clear takes away what isn't in a namespace, and what would keep the namespace.
func (h *hub) clear() {
	h.stop()
	// the test's own has ended
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := h.client.DeleteAllOf(ctx, &v1alpha1.WorkerCluster{}); err != nil {
		h.t.Error(err)
	}
	var secrets corev1.SecretList
	if err := h.client.List(ctx, &secrets, client.InNamespace(h.namespace)); err != nil {
		h.t.Error(err)
	}
	for i := range secrets.Items {
		secrets.Items[i].Finalizers = nil
		if err := h.client.Update(ctx, &secrets.Items[i]); client.IgnoreNotFound(err) != nil {
			h.t.Error(err)
		}
	}
}

func (h *hub) check(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

// register creates a registration Secret.
func (h *hub) register(name string, kubeconfig []byte, labels ...string) *corev1.Secret {
	h.t.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: name, Labels: map[string]string{v1alpha1.LabelWorkerCluster: "true"}},
		Data:       map[string][]byte{v1alpha1.KubeconfigKey: kubeconfig},
	}
	for _, label := range labels {
		key, value, _ := strings.Cut(label, "=")
		secret.Labels[key] = value
	}
	h.check(h.client.Create(h.Context(), secret))
	return secret
}

// rotate puts another kubeconfig into a registration Secret.
func (h *hub) rotate(name string, kubeconfig []byte) {
	h.t.Helper()
	patch := client.MergeFrom(&corev1.Secret{})
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: name},
		Data:       map[string][]byte{v1alpha1.KubeconfigKey: kubeconfig},
	}
	h.check(h.client.Patch(h.Context(), secret, patch))
}

func (h *hub) unregister(name string) {
	h.t.Helper()
	h.check(h.client.Delete(h.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: name}}))
}

// edit changes a WorkerCluster's spec.
func (h *hub) edit(name string, change func(*v1alpha1.WorkerClusterSpec)) {
	h.t.Helper()
	var wc v1alpha1.WorkerCluster
	h.check(h.client.Get(h.Context(), client.ObjectKey{Name: name}, &wc))
	before := wc.DeepCopy()
	change(&wc.Spec)
	h.check(h.client.Patch(h.Context(), &wc, client.MergeFrom(before)))
}

// until waits for a condition on a WorkerCluster.
func (h *hub) until(name string, condition func(*v1alpha1.WorkerCluster) bool) *v1alpha1.WorkerCluster {
	h.t.Helper()
	return h.Until(rig.Object(h.api, "workerclusters", "", name), func(o runtime.Object) bool {
		wc, ok := o.(*v1alpha1.WorkerCluster)
		return ok && condition(wc)
	}).(*v1alpha1.WorkerCluster)
}

func (h *hub) untilGone(name string) {
	h.t.Helper()
	h.Until(rig.Object(h.api, "workerclusters", "", name), rig.Gone)
	h.Until(rig.Object(h.cluster.Client().CoreV1().RESTClient(), "secrets", h.namespace, name), rig.Gone)
}

// ready, with a reason; so for schedulable.
func ready(reason string) func(*v1alpha1.WorkerCluster) bool {
	return condition(v1alpha1.ConditionReady, reason)
}

func schedulable(reason string) func(*v1alpha1.WorkerCluster) bool {
	return condition(v1alpha1.ConditionSchedulable, reason)
}

func condition(kind, reason string) func(*v1alpha1.WorkerCluster) bool {
	return func(wc *v1alpha1.WorkerCluster) bool {
		c := meta.FindStatusCondition(wc.Status.Conditions, kind)
		return c != nil && c.Reason == reason
	}
}

func message(wc *v1alpha1.WorkerCluster, kind string) string {
	if c := meta.FindStatusCondition(wc.Status.Conditions, kind); c != nil {
		return c.Message
	}
	return ""
}

// untilEvent waits for an event on an object of the hub.
func (h *hub) untilEvent(kind, name, reason string) *corev1.Event {
	h.t.Helper()
	return h.Until(rig.Objects(h.cluster.Client().CoreV1().RESTClient(), "events", ""), func(o runtime.Object) bool {
		e, ok := o.(*corev1.Event)
		return ok && e.InvolvedObject.Kind == kind && e.InvolvedObject.Name == name && e.Reason == reason
	}).(*corev1.Event)
}

// placed stands in for the dispatcher: it counts Jobs, and hears of changes.
type placed struct {
	mu         sync.Mutex
	unfinished map[string]int
	heard      map[string]chan struct{}
}

// Counted implements clusters.Placements: nothing has to be counted first.
func (p *placed) Counted() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}

// Stockouts implements clusters.Placements: there are none.
func (p *placed) Stockouts(string) []v1alpha1.Stockout { return nil }

// RestoreStockouts implements clusters.Placements.
func (p *placed) RestoreStockouts(string, []v1alpha1.Stockout) {}

// Unfinished is the number that set was told.
func (p *placed) Unfinished(worker string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.unfinished[worker]
}

// Placed is the same: none has finished.
func (p *placed) Placed(worker string) int { return p.Unfinished(worker) }

func (p *placed) set(worker string, unfinished int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.unfinished == nil {
		p.unfinished = map[string]int{}
	}
	p.unfinished[worker] = unfinished
}

// next is closed at the next news of a mirror.
func (p *placed) next(key types.NamespacedName) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.heard == nil {
		p.heard = map[string]chan struct{}{}
	}
	if p.heard[key.String()] == nil {
		p.heard[key.String()] = make(chan struct{})
	}
	return p.heard[key.String()]
}

// MirrorChanged closes what next gave out.
func (p *placed) MirrorChanged(_ string, c clusters.MirrorChange) {
	key := c.Key
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.heard[key.String()]; c != nil {
		close(c)
		delete(p.heard, key.String())
	}
}

// WorkerChanged is seen on the WorkerCluster.
func (p *placed) WorkerChanged(string) {}

// CapacityFreed is of no interest.
func (p *placed) CapacityFreed(string, placement.Change) {}

// PodsStuck is of no interest.
func (p *placed) WorkerRestored(string) {}

func (p *placed) PodsStuck(string, types.NamespacedName) {}

func (p *placed) PodUnlabelled(string, types.NamespacedName, types.UID) {}
