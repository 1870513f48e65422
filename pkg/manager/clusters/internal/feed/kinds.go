package feed

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/jobferry/jobferry/pkg/manager/clusters/internal/link"
	"github.com/jobferry/jobferry/pkg/placement"
	"github.com/jobferry/jobferry/pkg/util/decoded"
)

// kind is one kind of a worker's objects that decides what fits there.
type kind struct {
	gathering
	api      *rest.RESTClient
	resource string
	fields   string
	// needed reports whether it has to be watched. Once it was, it stays so.
	needed func() bool
	intake func() *intake
	sink   sink
	// know and forget tell the store; they do nothing for nodes and Pods, which have others.
	know   func(bool)
	forget func()
	// informer is nil while stopped.
	informer *informer
}

// gathering makes kinds.
type gathering struct {
	link  *link.Link
	event func() // called on every event
	err   error
}

func (g *gathering) kind(gv schema.GroupVersion, resource string, intake func() *intake, to sink) *kind {
	api, err := g.link.Watcher(gv)
	if err != nil {
		g.err = err
	}
	return &kind{gathering: *g, api: api, resource: resource, intake: intake, sink: to, know: func(bool) {}, forget: func() {},
		needed: func() bool { return true }}
}

// What is held of one worker's objects, beside its nodes and Pods. Bytes are what they take in
// memory.
const (
	maxClasses    = 1_000
	maxClassBytes = 4 << 20
	maxRules      = 10_000 // ResourceQuotas, and LimitRanges
	maxRuleBytes  = 32 << 20
)

// What is held besides of a worker with devices.
const (
	maxSlices        = 20_000
	maxSliceBytes    = 64 << 20
	maxClaims        = 20_000
	maxClaimBytes    = 32 << 20
	maxTemplates     = 5_000
	maxTemplateBytes = 8 << 20
)

func (g *gathering) others(store *placement.Store) []*kind {
	core, dra := corev1.SchemeGroupVersion, resourcev1.SchemeGroupVersion
	always := []*kind{
		kindOf(g, schedulingv1.SchemeGroupVersion, "priorityclasses", store.PriorityClasses, &schedulingv1.PriorityClass{}, maxClasses, maxClassBytes),
		kindOf(g, nodev1.SchemeGroupVersion, "runtimeclasses", store.RuntimeClasses, &nodev1.RuntimeClass{}, maxClasses, maxClassBytes),
		kindOf(g, core, "limitranges", store.LimitRanges, &corev1.LimitRange{}, maxRules, maxRuleBytes),
		kindOf(g, core, "resourcequotas", store.Quotas, &corev1.ResourceQuota{}, maxRules, maxRuleBytes),
	}
	// Without a class, nobody gets a device. Most workers have none, and a watch takes some memory.
	alert := &gathering{link: g.link, event: g.link.Options().Wake}
	classes := kindOf(alert, dra, "deviceclasses", store.DeviceClasses, &resourcev1.DeviceClass{}, maxClasses, maxClassBytes)
	forDevices := []*kind{
		kindOf(g, dra, "resourceslices", store.ResourceSlices, &resourcev1.ResourceSlice{}, maxSlices, maxSliceBytes),
		kindOf(g, dra, "resourceclaims", store.ResourceClaims, &resourcev1.ResourceClaim{}, maxClaims, maxClaimBytes),
		kindOf(g, dra, "resourceclaimtemplates", store.ResourceClaimTemplates, &resourcev1.ResourceClaimTemplate{}, maxTemplates, maxTemplateBytes),
	}
	g.err = cmp.Or(g.err, alert.err)
	for _, k := range forDevices {
		k.needed = store.HasDeviceClasses
	}
	return slices.Concat(always, []*kind{classes}, forDevices)
}

// objectStore keeps what is read of one kind's objects.
type objectStore[T object] interface {
	store[types.NamespacedName, T]
	Key(T) types.NamespacedName
	Slim(T) T
	Know(bool)
	Forget()
}

func kindOf[T object](
	g *gathering, gv schema.GroupVersion, resource string, keeps objectStore[T], example T, most int, bytes int64,
) *kind {
	size := func(o object) int64 { return structBytes + decoded.Size(o) }
	intake := func() *intake {
		return newIntake(example, func(o T) (T, bool) { return keeps.Slim(o), true }, size,
			most, bytes, "it has more than %d "+resource+", or they take more than %d MiB")
	}
	to := fanOut[types.NamespacedName, T]{keeps.Key, []store[types.NamespacedName, T]{keeps}, g.event}
	k := g.kind(gv, resource, intake, to.sink)
	k.know, k.forget = keeps.Know, keeps.Forget
	return k
}

// start starts the informer, unless it runs.
func (k *kind) start(ctx context.Context) {
	if k.informer != nil {
		return
	}
	k.informer = newInformer(informerSource{
		link: k.link, api: k.api, resource: k.resource,
		narrow: func(o *metav1.ListOptions) { o.FieldSelector = k.fields },
		intake: k.intake(), sink: k.sink,
	}, k.link.Options().Wake)
	k.informer.start(ctx)
}

func (k *kind) stop() {
	if k.informer == nil {
		return
	}
	k.informer.stop()
	k.informer = nil
	k.forget()
}

// look tells the store whether the objects are known, and says why they can't be; empty if they
// can. They are settled when they have been listed, or lists have failed, or when they aren't
// needed.
func (k *kind) look() (why string, settled bool) {
	if k.informer == nil {
		return "", !k.needed()
	}
	why = k.hindrance()
	synced, failing := k.informer.synced(), k.informer.listing.Load() != nil
	k.know(synced && why == "") // whoever sees it settled knows that already
	return why, synced || failing
}

// lookAt looks at several kinds.
func lookAt(kinds []*kind) (unchecked []string, settled bool) {
	settled = true
	for _, k := range kinds {
		why, is := k.look()
		if why != "" {
			unchecked = append(unchecked, why)
		}
		settled = settled && is
	}
	return unchecked, settled
}

// synced reports whether all objects of the first list have been handled.
func (k *kind) synced() bool { return k.informer != nil && k.informer.synced() }

// lacksPermissionFor is for how many probe intervals requests have to be refused until objects that
// were known count as unknown. An API server may refuse them for a moment, as it starts or its
// webhooks fail: if nothing was known then, all Jobs that wait would fit.
const lacksPermissionFor = 30

// isRefusedForNow reports whether requests have been refused since a moment ago.
func isRefusedForNow(since time.Time, o link.Options) bool {
	return o.Clock.Since(since) < lacksPermissionFor*o.ProbeInterval
}

// hindrance says why the objects can't be known; empty if they can, or could a moment ago.
func (k *kind) hindrance() string {
	if k.informer == nil {
		return ""
	}
	switch h := k.informer.hindrance(); {
	case h == nil:
		return ""
	case link.LacksPermission(h.err):
		if k.synced() && isRefusedForNow(h.refused, k.link.Options()) {
			return ""
		}
		return fmt.Sprintf("the kubeconfig's user may not list and watch %s of all namespaces", k.resource)
	default:
		return h.err.Error()
	}
}
