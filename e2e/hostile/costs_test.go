package hostile_test

import (
	"context"
	"maps"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/pkg/api/hubstate"
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
	s.JobUntil(s.Hub, s.tenant, "victim", func(j *batchv1.Job) bool { return hubstate.Get(j, hubstate.Cluster) == hostile })
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
