package clusters

import (
	"context"
	"reflect"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/capacity"
	"github.com/jobferry/jobferry/pkg/manager/placement/autoscaling"
)

// autoscalerReader reads now and then what a worker shows of its autoscaler, with capacity Autoscaled. It watches
// nothing: cluster-autoscaler writes its status every few seconds, and most workers have one autoscaler or
// the other. Only the supervisor calls start and stop.
type autoscalerReader struct {
	karpenter, core *rest.RESTClient
	ledger          *capacity.Ledger
	clock           clock.Clock
	every, timeout  time.Duration
	// changed is called when the worker says something else than before, and grown when only its nodes show
	// something else.
	changed, grown func()

	observed atomic.Pointer[autoscaling.Observed]
	// forbidden: the hub may not list NodePools.
	forbidden atomic.Bool
	cancel    context.CancelFunc
	running   sync.WaitGroup
}

// autoscalerIntervals is how many probe intervals are between two reads.
const autoscalerIntervals = 3

// poolsPerPage bounds an answer: a NodePool may name hundreds of instance types. Of maxPools that are read,
// those with the largest weight count.
const (
	poolsPerPage = 50
	maxPools     = 10 * autoscaling.MaxPools
)

func newAutoscalerReader(c *connection, ledger *capacity.Ledger, options Options, changed, grown func()) (*autoscalerReader, error) {
	karpenter, err := newREST(schema.GroupVersion{Group: "karpenter.sh", Version: "v1"}, c, jobRequest)
	if err != nil {
		return nil, err
	}
	core, err := newREST(corev1.SchemeGroupVersion, c, jobRequest)
	return &autoscalerReader{
		karpenter: karpenter, core: core, ledger: ledger, clock: options.Clock, changed: changed, grown: grown,
		every: autoscalerIntervals * options.ProbeInterval, timeout: options.RequestTimeout,
	}, err
}

// start reads until stop, unless it does so already.
func (r *autoscalerReader) start(ctx context.Context) {
	if r.cancel != nil {
		return
	}
	ctx, r.cancel = context.WithCancel(ctx)
	r.running.Go(func() {
		for ctx.Err() == nil {
			r.read(ctx)
			select {
			case <-ctx.Done():
			case <-r.clock.After(r.every):
			}
		}
	})
}

// stop ends the reads. What was observed stays known.
func (r *autoscalerReader) stop() {
	if r.cancel != nil {
		r.cancel()
		r.running.Wait()
		r.cancel = nil
	}
}

// read observes the worker once. What can't be read now is as it was before.
func (r *autoscalerReader) read(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	pools, poolsErr := r.nodePools(ctx)
	groups, groupsErr := r.nodeGroups(ctx)
	if isUnknown(poolsErr) || isUnknown(groupsErr) {
		return
	}
	forbidden, before := apierrors.IsForbidden(poolsErr), r.observed.Load()
	next := autoscaling.Observe(before, pools, groups, r.ledger.Free(types.NamespacedName{}).Nodes())
	if reflect.DeepEqual(before, next) && forbidden == r.forbidden.Load() {
		return
	}
	r.forbidden.Store(forbidden)
	r.observed.Store(next)
	if next.SaysTheSame(before) {
		r.grown()
	} else {
		r.changed()
	}
}

// isUnknown reports whether an error doesn't say that there is nothing, or nothing that may be read.
func isUnknown(err error) bool {
	return err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err)
}

func (r *autoscalerReader) nodePools(ctx context.Context) (pools []autoscaling.NodePool, err error) {
	for next := ""; len(pools) < maxPools; {
		page, err := r.karpenter.Get().Resource("nodepools").MaxRetries(0).SetHeader("Accept", runtime.ContentTypeJSON).
			Param("limit", strconv.Itoa(poolsPerPage)).Param("continue", next).Do(ctx).Raw()
		if err != nil {
			return nil, err
		}
		read, more, err := autoscaling.ReadNodePools(page)
		if pools = append(pools, read...); err != nil || more == "" || len(read) == 0 {
			return pools, err
		}
		next = more
	}
	return pools, nil
}

func (r *autoscalerReader) nodeGroups(ctx context.Context) (map[string]autoscaling.NodeGroup, error) {
	var status corev1.ConfigMap
	err := r.core.Get().Namespace(metav1.NamespaceSystem).Resource("configmaps").Name("cluster-autoscaler-status").
		MaxRetries(0).Do(ctx).Into(&status)
	if err != nil {
		return nil, err
	}
	groups, err := autoscaling.ReadNodeGroups(status.Data["status"])
	if err != nil {
		return nil, nil // it's of an older release, or nonsense
	}
	return groups, nil
}

// missing says of what no nodes can be expected; empty if there is no such thing, or nothing is read yet.
func (r *autoscalerReader) missing(spec *v1alpha1.WorkerClusterSpec) string {
	observed := r.observed.Load()
	if spec.Capacity != v1alpha1.CapacityAutoscaled || observed == nil {
		return ""
	}
	why := observed.Missing(spec.Autoscaling)
	if why != "" && r.forbidden.Load() {
		return why + ", and the kubeconfig's user may not list nodepools.karpenter.sh"
	}
	return why
}
