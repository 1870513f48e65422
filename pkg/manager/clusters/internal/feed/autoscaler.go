package feed

import (
	"context"
	"reflect"
	"strconv"
	"strings"
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
	"github.com/jobferry/jobferry/pkg/manager/clusters/internal/link"
	"github.com/jobferry/jobferry/pkg/manager/workerpanic"
	"github.com/jobferry/jobferry/pkg/placement"
)

// autoscalerReader reads what a worker shows of its autoscaler, with capacity Autoscaled: NodePools
// and cluster-autoscaler's status now and then, as that is written every few seconds, and most
// workers have one autoscaler or the other. It watches what becomes of NodeClaims where there are
// NodePools. Only the supervisor calls start and stop.
type autoscalerReader struct {
	link            *link.Link
	worker          string
	karpenter, core *rest.RESTClient
	claims          claimWatch
	ledger          *placement.Ledger
	clock           clock.Clock
	every, timeout  time.Duration
	autoscalerCallbacks

	observed atomic.Pointer[placement.Observed]
	// forbidden: the hub may not list NodePools; claimsForbidden: it may not watch NodeClaims.
	forbidden, claimsForbidden atomic.Bool
	cancel                     context.CancelFunc
	running                    sync.WaitGroup

	// What follows belongs to the goroutine that reads.
	// unwatch ends the watch of NodeClaims; nil: there is none.
	unwatch context.CancelFunc
	// news: a NodeClaim was seen since the last turn, which was at turned.
	news   bool
	turned time.Time
	// refused is since when the hub may not read what it read before; zero: it may.
	refused time.Time
}

// autoscalerCallbacks are called when something else is known of a worker's autoscaler.
type autoscalerCallbacks struct {
	// changed is called when the autoscaler is another than before.
	changed func()
	// grown is called when only its nodes show something else, or other machines don't come. How
	// often that is, is up to whoever makes Pods in the worker.
	grown func()
	// stuck is called with each Job whose Pods wait for a node, when more machines don't come.
	stuck func(types.NamespacedName)
}

// autoscalerIntervals is how many probe intervals are between two reads.
const autoscalerIntervals = 3

// turnInterval is the least time between two looks at what NodeClaims say: a worker may have any
// number of them, and each change has Jobs that wait looked at.
const turnInterval = 5 * time.Second

// poolsPerPage bounds an answer, as a NodePool may name hundreds of instance types, and poolPages
// the answers: of what they have, the pools with the largest weight count.
const poolsPerPage, poolPages = 50, 10

func newAutoscalerReader(l *link.Link, ledger *placement.Ledger, call autoscalerCallbacks) (*autoscalerReader, error) {
	options := l.Options()
	group := schema.GroupVersion{Group: "karpenter.sh", Version: "v1"}
	karpenter, err := l.Reader(group)
	if err != nil {
		return nil, err
	}
	claims, err := l.Watcher(group)
	if err != nil {
		return nil, err
	}
	core, err := l.Reader(corev1.SchemeGroupVersion)
	r := &autoscalerReader{
		link: l, worker: options.Worker, karpenter: karpenter, core: core, ledger: ledger, clock: options.Clock, autoscalerCallbacks: call,
		every: autoscalerIntervals * options.ProbeInterval, timeout: options.RequestTimeout,
	}
	r.claims = claimWatch{
		api: claims, clock: r.clock, retry: r.every, again: options.RetryDelay, begun: r.claimsBegun, news: make(chan struct{}, 1),
	}
	return r, err
}

// claimsBegun notes whether NodeClaims may be watched.
func (r *autoscalerReader) claimsBegun(err error) {
	if forbidden := apierrors.IsForbidden(err); r.claimsForbidden.Swap(forbidden) != forbidden {
		r.changed()
	}
}

// start reads until stop, unless it does so already.
func (r *autoscalerReader) start(ctx context.Context) {
	if r.cancel != nil {
		return
	}
	ctx, r.cancel = context.WithCancel(ctx)
	r.running.Go(func() { r.run(ctx) })
}

// stop ends the reads. What was observed stays known.
func (r *autoscalerReader) stop() {
	if r.cancel != nil {
		r.cancel()
		r.running.Wait()
		r.cancel, r.unwatch = nil, nil
	}
}

func (r *autoscalerReader) run(ctx context.Context) {
	for reads := r.clock.After(0); ; {
		now := r.clock.Now()
		due := r.due(now)
		var turn <-chan time.Time
		switch {
		case due.IsZero():
		case !now.Before(due):
			r.news, r.turned = false, now
			workerpanic.Contain(r.worker, func() { r.observe(r.observed.Load()) })
			continue
		default:
			turn = r.clock.After(due.Sub(now))
		}
		select {
		case <-ctx.Done():
			return
		case <-r.claims.news:
			r.news = true
		case <-turn:
		case <-reads:
			workerpanic.Contain(r.worker, func() { r.read(ctx) }) // it holds no lock
			reads = r.clock.After(r.every)
		}
		r.watchClaims(ctx)
	}
}

// watchClaims begins the watch of NodeClaims when there are NodePools, and ends it when there are
// none.
func (r *autoscalerReader) watchClaims(ctx context.Context) {
	switch wanted := r.hasPools(); {
	case wanted && r.unwatch == nil:
		ctx, r.unwatch = context.WithCancel(ctx)
		r.running.Go(func() { r.claims.run(ctx, r.worker) })
	case !wanted && r.unwatch != nil:
		r.unwatch()
		r.unwatch = nil
	}
}

// hasPools reports whether the worker has Karpenter's NodePools.
func (r *autoscalerReader) hasPools() bool {
	o := r.observed.Load()
	return o != nil && len(o.Pools) > 0
}

// due is when to look at what NodeClaims say; zero: not before there is another one.
func (r *autoscalerReader) due(now time.Time) time.Time {
	at, soonest := r.claims.next(r.turned), r.turned.Add(turnInterval)
	if r.news {
		at = now
	}
	if at.IsZero() || at.After(soonest) {
		return at
	}
	return soonest
}

// read observes the worker once. What can't be read now is as it was before.
func (r *autoscalerReader) read(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	ctx, release := r.link.Hold(ctx)
	defer release()
	pools, poolsErr := r.nodePools(ctx)
	status, groupsErr := r.groupStatus(ctx)
	if isUnknown(poolsErr) || isUnknown(groupsErr) || r.keeps(poolsErr, groupsErr) {
		return
	}
	forbidden := apierrors.IsForbidden(poolsErr)
	if before := r.forbidden.Swap(forbidden); before != forbidden {
		defer r.changed()
	}
	r.observe(r.observed.Load().Update(pools, status, r.ledger.Free(types.NamespacedName{}).Nodes()))
}

// keeps reports whether what was observed counts though the hub may not read it now: see
// lacksPermissionFor.
func (r *autoscalerReader) keeps(pools, groups error) bool {
	before := r.observed.Load()
	switch {
	case before == nil, !(apierrors.IsForbidden(pools) && len(before.Pools) > 0 || apierrors.IsForbidden(groups) && len(before.Groups) > 0):
		r.refused = time.Time{}
		return false
	case r.refused.IsZero():
		r.refused = r.clock.Now()
	}
	return isRefusedForNow(r.refused, r.link.Options())
}

// observe records what is observed, with the machines that don't come for now.
func (r *autoscalerReader) observe(next *placement.Observed) {
	if next == nil {
		return // nothing was read yet
	}
	before := r.observed.Load()
	next = r.claims.addTo(next)
	if reflect.DeepEqual(before, next) {
		return
	}
	r.observed.Store(next)
	if !next.SaysTheSame(before) {
		r.changed()
		return
	}
	r.grown()
	if next.LacksMore(before) { // those that have been sent there may go elsewhere
		for _, job := range r.ledger.Unscheduled() {
			r.stuck(job)
		}
	}
}

// isUnknown reports whether an error doesn't say that there is nothing, or nothing that may be
// read.
func isUnknown(err error) bool {
	return err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err)
}

func (r *autoscalerReader) nodePools(ctx context.Context) (pools placement.NodePools, err error) {
	next := ""
	for range poolPages {
		page, err := r.karpenter.Get().Resource("nodepools").MaxRetries(0).SetHeader("Accept", runtime.ContentTypeJSON).
			Param("limit", strconv.Itoa(poolsPerPage)).Param("continue", next).Do(ctx).Raw()
		if err != nil {
			return nil, err
		}
		if next, err = pools.Add(page); err != nil || next == "" || len(next) > maxToken {
			return pools, err
		}
	}
	return pools, nil
}

// groupStatus is what cluster-autoscaler says of its node groups.
func (r *autoscalerReader) groupStatus(ctx context.Context) (string, error) {
	var status corev1.ConfigMap
	err := r.core.Get().Namespace(metav1.NamespaceSystem).Resource("configmaps").Name("cluster-autoscaler-status").
		MaxRetries(0).Do(ctx).Into(&status)
	return status.Data["status"], link.OfAPIServer(err)
}

// missing says of what no nodes can be expected; empty if there is no such thing, or nothing is
// read yet.
func (r *autoscalerReader) missing(spec *v1alpha1.WorkerClusterSpec) string {
	observed := r.observed.Load()
	if spec.Capacity != v1alpha1.CapacityAutoscaled || observed == nil {
		return ""
	}
	why := observed.Missing(spec.Autoscaling)
	if why != "" && r.forbidden.Load() {
		why += ", and the kubeconfig's user may not list nodepools.karpenter.sh"
	}
	if len(observed.Pools) > 0 && r.claimsForbidden.Load() {
		why += "; nodes that Karpenter can't make are expected for podStartTimeout: the kubeconfig's user may not watch nodeclaims.karpenter.sh"
	}
	return strings.TrimPrefix(why, "; ")
}
