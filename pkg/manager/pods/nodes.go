package pods

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/util/text"
)

// ConditionWorkerReady of a Node has the state of the worker that it stands for. The condition
// Ready is that of the manager: it's False by the hub's own word, when no replica renews the Lease.
const ConditionWorkerReady corev1.NodeConditionType = v1alpha1.KeyPrefix + "WorkerReady"

const (
	labelType      = "type"
	virtualKubelet = "virtual-kubelet"
	leaseNamespace = corev1.NamespaceNodeLease
	leaseSeconds   = 40
	renewInterval  = 10 * time.Second
	checkInterval  = time.Minute     // of a Node that nothing has changed
	heartbeat      = 5 * time.Minute // as kubelets
	nodeTimeout    = 5 * time.Second
	reasonServing  = "ManagerServes"
	messageServing = "jobferry-manager answers for this Node"
)

// errForeignNode is returned for a Node of our name that isn't ours.
var errForeignNode = errors.New("there is another Node of this name")

// workerState is what a Node shows of its worker.
type workerState struct {
	ready           bool
	reason, message string
}

// address is where this replica serves the kubelet's API.
type address struct {
	ip   netip.Addr
	port int32
}

// nodes writes the Nodes that stand for workers, and their Leases. One goroutine calls its methods,
// but for has.
type nodes struct {
	hub     client.Client
	cache   client.Reader
	clock   clock.PassiveClock
	address address
	renewed map[string]*renewed

	mu    sync.Mutex
	there map[string]bool
}

// renewed is what was last written for a worker.
type renewed struct {
	lease   *coordinationv1.Lease
	state   workerState
	checked time.Time
}

func newNodes(hub client.Client, cache client.Reader, clock clock.PassiveClock, at address) *nodes {
	return &nodes{hub: hub, cache: cache, clock: clock, address: at, renewed: map[string]*renewed{}, there: map[string]bool{}}
}

// hasName reports whether a worker's name can be in the label of a Node.
func hasName(worker string) bool {
	return len(validation.IsValidLabelValue(worker)) == 0 && len(validation.IsDNS1123Subdomain(nodeName(worker))) == 0
}

// has reports whether there is a Node for a worker.
func (n *nodes) has(worker string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.there[worker]
}

// sync brings the Node of a worker up to date, and renews its Lease.
func (n *nodes) sync(ctx context.Context, worker string, state workerState) error {
	ctx, cancel := context.WithTimeout(ctx, nodeTimeout)
	defer cancel()
	r := n.renewed[worker]
	if r == nil {
		r = &renewed{}
		n.renewed[worker] = r
	}
	now := n.clock.Now()
	var uid types.UID
	if r.lease != nil {
		uid = r.lease.OwnerReferences[0].UID
	}
	// The hub marks a Node whose Lease was late.
	late := r.lease == nil || now.Sub(r.lease.Spec.RenewTime.Time) > 2*renewInterval
	if late || r.state != state || now.Sub(r.checked) >= checkInterval {
		node, err := n.syncNode(ctx, worker, state)
		if err != nil {
			return err
		}
		if node.UID != uid {
			r.lease = nil
		}
		uid, r.state, r.checked = node.UID, state, now
		n.set(worker, true)
	}
	return n.renew(ctx, r, nodeName(worker), uid)
}

func (n *nodes) set(worker string, there bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if there {
		n.there[worker] = true
	} else {
		delete(n.there, worker)
	}
}

// syncNode creates the Node of a worker, and updates its status. Nothing that nobody asked for
// changes the Node besides.
func (n *nodes) syncNode(ctx context.Context, worker string, state workerState) (*corev1.Node, error) {
	node := &corev1.Node{}
	err := n.hub.Get(ctx, client.ObjectKey{Name: nodeName(worker)}, node)
	if apierrors.IsNotFound(err) {
		if node, err = n.newNode(ctx, worker); err == nil {
			err = n.hub.Create(ctx, node)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("node of worker %s: %w", worker, err)
	}
	if node.Labels[v1alpha1.LabelWorkerCluster] != worker {
		return nil, fmt.Errorf("node of worker %s: %s: %w", worker, node.Name, errForeignNode)
	}
	before := node.Status.DeepCopy()
	setStatus(&node.Status, n.address, state, n.clock.Now())
	if equality.Semantic.DeepEqual(before, &node.Status) {
		return node, nil
	}
	if err := n.hub.Status().Update(ctx, node); err != nil {
		return nil, fmt.Errorf("status of the node of worker %s: %w", worker, err)
	}
	return node, nil
}

// newNode makes the Node of a worker, which goes with the WorkerCluster. The hub runs nothing
// there: it's unschedulable, has a taint, and no capacity.
func (n *nodes) newNode(ctx context.Context, worker string) (*corev1.Node, error) {
	owner := &v1alpha1.WorkerCluster{}
	if err := n.cache.Get(ctx, client.ObjectKey{Name: worker}, owner); err != nil {
		return nil, err //nolint:wrapcheck // the caller says of what
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:   nodeName(worker),
			Labels: map[string]string{labelType: virtualKubelet, v1alpha1.LabelWorkerCluster: worker, corev1.LabelNodeExcludeBalancers: ""},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha1.GroupVersion.String(), Kind: "WorkerCluster", Name: worker, UID: owner.UID,
			}},
		},
		Spec: corev1.NodeSpec{
			Unschedulable: true,
			Taints:        []corev1.Taint{{Key: v1alpha1.LabelWorkerCluster, Value: worker, Effect: corev1.TaintEffectNoSchedule}},
		},
	}, nil
}

func setStatus(status *corev1.NodeStatus, at address, state workerState, now time.Time) {
	status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: at.ip.String()}}
	status.DaemonEndpoints.KubeletEndpoint.Port = at.port
	ready := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: reasonServing, Message: messageServing}
	worker := corev1.NodeCondition{
		Type: ConditionWorkerReady, Status: corev1.ConditionFalse, Reason: text.Reason(state.reason), Message: text.Clean(state.message, text.MaxMessage),
	}
	if state.ready {
		worker.Status = corev1.ConditionTrue
	}
	status.Conditions = withCondition(status.Conditions, ready, now)
	status.Conditions = withCondition(status.Conditions, worker, now)
}

func withCondition(all []corev1.NodeCondition, c corev1.NodeCondition, now time.Time) []corev1.NodeCondition {
	c.LastHeartbeatTime, c.LastTransitionTime = metav1.NewTime(now), metav1.NewTime(now)
	at := slices.IndexFunc(all, func(other corev1.NodeCondition) bool { return other.Type == c.Type })
	if at < 0 {
		return append(all, c)
	}
	before := all[at]
	if before.Status == c.Status {
		c.LastTransitionTime = before.LastTransitionTime
		if before.Reason == c.Reason && before.Message == c.Message && now.Sub(before.LastHeartbeatTime.Time) < heartbeat {
			return all
		}
	}
	all[at] = c
	return all
}

// renew renews the Lease of a Node, which goes with the Node.
func (n *nodes) renew(ctx context.Context, r *renewed, node string, uid types.UID) error {
	now := metav1.NewMicroTime(n.clock.Now())
	if r.lease != nil && now.Sub(r.lease.Spec.RenewTime.Time) < renewInterval/2 {
		return nil
	}
	lease := r.lease.DeepCopy()
	if lease == nil {
		lease = &coordinationv1.Lease{}
		err := n.hub.Get(ctx, client.ObjectKey{Namespace: leaseNamespace, Name: node}, lease)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("lease of node %s: %w", node, err)
		}
		lease.Namespace, lease.Name = leaseNamespace, node
		lease.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node, UID: uid}}
		lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: ptr.To(node), LeaseDurationSeconds: ptr.To[int32](leaseSeconds)}
	}
	lease.Spec.RenewTime = &now
	var err error
	if lease.ResourceVersion == "" {
		err = n.hub.Create(ctx, lease)
	} else {
		err = n.hub.Update(ctx, lease)
	}
	if r.lease = lease; err != nil {
		r.lease = nil
		return fmt.Errorf("lease of node %s: %w", node, err)
	}
	return nil
}

// list returns the workers for which there are Nodes.
func (n *nodes) list(ctx context.Context) (workers []string, err error) {
	var all corev1.NodeList
	if err := n.hub.List(ctx, &all, client.MatchingLabels{labelType: virtualKubelet}, client.HasLabels{v1alpha1.LabelWorkerCluster}); err != nil {
		return nil, fmt.Errorf("nodes of workers: %w", err)
	}
	for i := range all.Items {
		if worker := all.Items[i].Labels[v1alpha1.LabelWorkerCluster]; all.Items[i].Name == nodeName(worker) {
			workers = append(workers, worker)
		}
	}
	return workers, nil
}

// forget drops what is known of a worker that isn't registered any more.
func (n *nodes) forget(worker string) {
	n.set(worker, false)
	delete(n.renewed, worker)
}
