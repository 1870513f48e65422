package clusters

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/util/wake"
)

// leadership says whether this replica leads. A standby connects the workers and watches them, so
// that it's in control soon after it leads. It writes nothing, and no Listener hears of a worker.
type leadership struct{ begun chan struct{} }

func newLeadership() leadership { return leadership{make(chan struct{})} }

// leads reports whether this replica leads.
func (l leadership) leads() bool { return wake.IsClosed(l.begun) }

// Leading is closed when this replica leads. From then on, List has no worker that this replica had
// lost as a standby, or taken for another cluster than the hub knows.
func (r *Registry) Leading() <-chan struct{} { return r.leadership.begun }

// Start begins to lead, once all Jobs have been counted; the manager calls it on the leader.
func (r *reconciler) Start(ctx context.Context) error {
	select {
	case <-r.registry.options.Placements.Counted():
	case <-ctx.Done():
		return nil
	}
	var clusters v1alpha1.WorkerClusterList
	if err := r.client.List(ctx, &clusters); err != nil {
		return fmt.Errorf("worker clusters: %w", err)
	}
	for i := range clusters.Items {
		r.registry.options.Placements.RestoreStockouts(clusters.Items[i].Name, clusters.Items[i].Status.Stockouts)
	}
	if err := r.registry.begin(ctx); err != nil {
		return fmt.Errorf("begin to lead: %w", err)
	}
	r.registry.lead(clusters.Items)
	return r.reconcileAll(ctx)
}

// reconcileAll has all workers reconciled that there are now: what came before this replica led was
// left for later.
func (r *reconciler) reconcileAll(ctx context.Context) error {
	var clusters v1alpha1.WorkerClusterList
	if err := r.client.List(ctx, &clusters); err != nil {
		return fmt.Errorf("worker clusters: %w", err)
	}
	var secrets corev1.SecretList
	if err := r.client.List(ctx, &secrets, client.InNamespace(r.registry.options.Namespace)); err != nil {
		return fmt.Errorf("registrations: %w", err)
	}
	for i := range clusters.Items {
		r.registry.queue.Add(request(clusters.Items[i].Name))
	}
	for i := range secrets.Items {
		for _, due := range r.workersOf(ctx, &secrets.Items[i]) {
			r.registry.queue.Add(due)
		}
	}
	return nil
}

// lead begins the time in which this replica leads. What it found out as a standby about a worker
// that isn't as the last leader left it proves nothing: the leader may have reached that worker,
// and renewed its fence, until now. Such a worker is connected anew, from what the hub knows of it.
func (r *Registry) lead(all []v1alpha1.WorkerCluster) {
	for _, w := range r.List() {
		if !confirmed(w.View(), all, w.name) {
			r.remove(w.name)
		}
	}
	r.identities.recordAll(all)
	r.startup.expect(all)
	// Not when the process has started: it may have waited for days to be the leader.
	r.isolation.begin(r.options.Clock.Now())
	close(r.leadership.begun)
	for _, w := range r.List() {
		w.changed()
	}
}

// confirmed reports whether a standby has lost a worker at no time, and it's the cluster that the
// hub knows by its name.
func confirmed(v View, all []v1alpha1.WorkerCluster, name string) bool {
	for i := range all {
		if all[i].Name == name {
			return v.Since.IsZero() && v.ClusterUID == all[i].Status.ClusterUID
		}
	}
	return false
}
