package clusters

import (
	"context"
	"fmt"
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
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

// identities record which cluster each worker is. One cluster under two names would show each
// mirror twice, and one of them would be taken for stale.
type identities struct {
	mu      sync.Mutex
	workers map[types.UID]string
	// waiting has, by worker, what to call when its cluster is free, by those that wait for that.
	waiting map[string]map[string]func()
}

func newIdentities() *identities {
	return &identities{workers: map[types.UID]string{}, waiting: map[string]map[string]func(){}}
}

// record assigns a cluster to a worker, unless it has one, and returns the worker that has it. If
// that is another one, free is called when it's forgotten; nil: nothing is, and who waits stays.
func (i *identities) record(uid types.UID, worker string, free func()) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	has, recorded := i.workers[uid]
	switch {
	case !recorded:
		i.workers[uid], has = worker, worker
	case has != worker && free != nil:
		if i.waiting[has] == nil {
			i.waiting[has] = map[string]func(){}
		}
		i.waiting[has][worker] = free
	}
	return has
}

// recordAll assigns the clusters that are known already: otherwise the worker that is reached first
// could get the cluster of another.
func (i *identities) recordAll(known []v1alpha1.WorkerCluster) {
	for n := range known {
		if uid := known[n].Status.ClusterUID; uid != "" {
			i.record(uid, known[n].Name, nil)
		}
	}
}

// forget drops the clusters of a worker.
func (i *identities) forget(worker string) {
	i.mu.Lock()
	maps.DeleteFunc(i.workers, func(_ types.UID, of string) bool { return of == worker })
	waiting := i.waiting[worker]
	delete(i.waiting, worker)
	i.mu.Unlock()
	for _, free := range waiting {
		free()
	}
}
