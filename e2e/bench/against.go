package bench

import (
	"cmp"
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/e2e/bench/audit"
	"github.com/jobferry/jobferry/e2e/bench/report"
	"github.com/jobferry/jobferry/e2e/memstats"
	"github.com/jobferry/jobferry/e2e/product"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// turns are the programs of one round, in order: whichever is first this time is second the next.
func (r *run) turns(product installed, round int) []turn {
	head := turn{product: product, shows: r.options.Pods}
	if !r.options.compares() {
		return []turn{head}
	}
	base := turn{product: product, isBase: true}
	base.product.program = cmp.Or(r.options.Against, product.program)
	if round%2 == 0 {
		return []turn{base, head}
	}
	return []turn{head, base}
}

// turn is one manager in one round.
type turn struct {
	product installed
	isBase  bool
	// shows: it shows the Pods of the flood on the hub.
	shows bool
}

// show has Pods of the flood shown on the hub, or not, and returns the flags for the manager.
func (r *run) show(ctx context.Context, is bool) (flags []string, err error) {
	if !r.options.Pods {
		return nil, nil
	}
	hub, value := r.fleet.hub.client.CoreV1(), "null"
	if is {
		value = `"` + v1alpha1.PodsEnabled + `"`
	}
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%s}}}`, v1alpha1.LabelPods, value)
	if _, err := hub.Namespaces().Patch(ctx, floodNamespace, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return nil, err
	}
	if !is {
		return nil, hub.Nodes().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: v1alpha1.LabelWorkerCluster})
	}
	return product.PodsFlags()
}

// account takes what one manager used in its round, before it ends.
func (r *run) account(ctx context.Context) error {
	if !r.options.compares() {
		return nil
	}
	stats, err := memstats.Read(ctx, r.manager.profiles)
	if err != nil {
		return err
	}
	usage, err := r.manager.Usage()
	if err != nil {
		return err
	}
	r.round.Used = report.Used{
		Allocations: stats["Mallocs"], Allocated: stats["TotalAlloc"], Heap: stats["HeapAlloc"], PeakMemory: usage.PeakRSS, CPU: usage.CPU,
	}
	return nil
}

// countRound counts the requests of one round.
func (r *run) countRound(since time.Time) error {
	all, err := requestsOf(managerUser, r.fleet.all()...)
	if err != nil {
		return err
	}
	for _, c := range audit.Tally("", audit.Select(all, audit.In(floodNamespace), audit.Between(since, time.Now()))) {
		switch {
		case c.IsEvent():
			r.round.Used.Events += c.Requests
		case c.IsPod():
			r.round.Used.PodRequests += c.Requests
		default:
			r.round.Used.Requests += c.Requests
		}
	}
	return nil
}
