package clusters

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/util/text"
)

// HubUID reads the UID of the hub's namespace kube-system, which identifies the cluster. It is the
// hub's origin unless an admin chose another.
func HubUID(ctx context.Context, hub client.Reader) (types.UID, error) {
	var namespace corev1.Namespace
	if err := hub.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, &namespace); err != nil {
		return "", fmt.Errorf("the hub's namespace %s, whose UID is the hub's origin: %w", metav1.NamespaceSystem, err)
	}
	return namespace.UID, nil
}

// Limits of what a cluster says that it is, in bytes.
const (
	maxUID     = 64
	maxVersion = 64
)

// identity is what a cluster says that it is.
type identity struct {
	uid     types.UID
	version string // empty if it wasn't asked for
}

// prober reads the identity of a worker. The kube-system namespace shows that network, TLS,
// authentication, authorization and etcd work, as other requests need them; /readyz would show
// less. It also shows when another cluster answers at the same address.
type prober struct {
	api     *rest.RESTClient
	timeout time.Duration
	took    func(time.Duration)
}

func newProber(c *connection, options Options) (*prober, error) {
	api, err := newREST(corev1.SchemeGroupVersion, c, probeRequest)
	if err != nil {
		return nil, err
	}
	return &prober{api: api, timeout: options.ProbeTimeout, took: c.meter.probe}, nil
}

// probe gets the identity, or fails within the timeout.
func (p *prober) probe(ctx context.Context, withVersion bool) (identity, error) {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	start := time.Now()
	defer func() { p.took(time.Since(start)) }()

	var system corev1.Namespace
	err := p.api.Get().Resource("namespaces").Name(metav1.NamespaceSystem).MaxRetries(0).Do(ctx).Into(&system)
	if err == nil && len(system.UID) > maxUID {
		err = fmt.Errorf("the UID of its namespace %s has %d characters, and no API server makes more than %d", metav1.NamespaceSystem, len(system.UID), maxUID)
	}
	if err != nil || !withVersion {
		return identity{uid: system.UID}, err
	}
	raw, err := p.api.Get().AbsPath("/version").MaxRetries(0).Do(ctx).Raw()
	if err != nil {
		return identity{}, err
	}
	var info version.Info
	if err := json.Unmarshal(raw, &info); err != nil {
		return identity{}, fmt.Errorf("read the API server's version: %w", err)
	}
	return identity{uid: system.UID, version: text.Clean(info.GitVersion, maxVersion)}, nil
}

// identities record which cluster each worker is. One cluster under two names would show each
// mirror twice, and one of them would be taken for stale.
type identities struct {
	mu      sync.Mutex
	workers map[types.UID]string
}

func newIdentities() *identities { return &identities{workers: map[types.UID]string{}} }

// record assigns a cluster to a worker, unless it has one, and returns the worker that has it.
func (i *identities) record(uid types.UID, worker string) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	if _, recorded := i.workers[uid]; !recorded {
		i.workers[uid] = worker
	}
	return i.workers[uid]
}

// recordAll assigns the clusters that are known already: otherwise the worker that is reached first could
// get the cluster of another.
func (i *identities) recordAll(known []v1alpha1.WorkerCluster) {
	for n := range known {
		if uid := known[n].Status.ClusterUID; uid != "" {
			i.record(uid, known[n].Name)
		}
	}
}

// forget drops the clusters of a worker.
func (i *identities) forget(worker string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	maps.DeleteFunc(i.workers, func(_ types.UID, of string) bool { return of == worker })
}
