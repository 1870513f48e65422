package job

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/api/namespaces"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/manager/group"
	"github.com/jobferry/jobferry/pkg/manager/kueue"
	"github.com/jobferry/jobferry/pkg/manager/tracing"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// Options are the settings of the controller of hub Jobs.
type Options struct {
	// Namespace is where the registration Secrets are. Default jobferry-system.
	Namespace string
	// Origin is the id of this hub. Default: the UID of its kube-system namespace. Two hubs that
	// share a worker must differ in it.
	Origin v1alpha1.Origin
	// Concurrency is the number of Jobs reconciled at a time. Default 128.
	Concurrency int
	// WorkerConcurrency is how many of them may be busy with one worker. Default 16.
	WorkerConcurrency int
	// PassOver is how long a worker that can't take a Job is passed over for it. Default 5m.
	PassOver time.Duration
	// DispatchAllNamespaces: Jobs are dispatched from namespaces without v1alpha1.LabelDispatch, too,
	// but for those that never are; see namespaces.Gate.
	DispatchAllNamespaces bool
	// Groups are the kinds of objects whose Jobs run in one worker. Default: JobSets.
	Groups group.Kinds
	// DefaultPodSecurity is that of namespaces created in workers whose namesakes on the hub have
	// none. Default baseline.
	DefaultPodSecurity namespaces.PodSecurity
	// HubKeys are those of labels and annotations that stay on the hub, beside the usual ones.
	HubKeys mirror.HubKeys
	// CarryAccountAnnotations are those of ServiceAccounts that are carried. Default: none.
	CarryAccountAnnotations mirror.Keys
	// Kueue says how to work with Kueue on the hub.
	Kueue kueue.Options
	// Timing are the delays of decisions.
	Timing dispatch.Timing
	// WeightOfJob is what a hub Job takes in memory at most while it's read whole, as far as is known;
	// nil: none is large.
	WeightOfJob func(types.UID) int64
	// Tracer makes the traces of Jobs; nil: none.
	Tracer *tracing.Tracer
}
