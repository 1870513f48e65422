package registration

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/workeraccess"
)

// FieldManager owns the fields that the registration applies.
const FieldManager = "kubectl-jobferry"

// Request is the desired registration.
type Request struct {
	// Name of the WorkerCluster.
	Name string
	// HubUID is the UID of the hub's namespace kube-system.
	HubUID types.UID
	// Origin is the manager's --origin; empty: HubUID.
	Origin v1alpha1.Origin
	// Namespace is the manager's, on the hub.
	Namespace string
	// AllNamespaces lets the hub have Jobs in each namespace of the worker, Namespaces in these only.
	AllNamespaces bool
	Namespaces    []string
	// Spec of the WorkerCluster; what isn't set gets the API's defaults.
	Spec v1alpha1.WorkerClusterSpec
	// Labels of the WorkerCluster.
	Labels map[string]string
	// PodAccess is what users of the hub may do with their Jobs' Pods: logs, exec, delete. Nil:
	// undecided.
	PodAccess []string
	// Token is the one in use; empty: there is none. TokenDuration is how long a bound token lasts;
	// zero: it is long-lived.
	Token         string
	TokenDuration time.Duration
	// Account is the name of the ServiceAccount in use; empty: a new registration. With it, all its
	// tokens end.
	Account string
	// FormerAccount keeps its rights while Account takes its place; empty: there is none.
	FormerAccount string
}

// base is the name of the worker's objects.
func (r Request) base() string { return BaseName(r.HubUID) }

// idLength keeps names readable; hubs of one worker rarely share 8 hex digits.
const idLength = 8

// BaseName is the name of a hub's objects in its workers.
func BaseName(hub types.UID) string {
	id := string(hub)
	return "jobferry-hub-" + id[:min(len(id), idLength)]
}

// Bound reports whether the token is a bound one.
func (r Request) Bound() bool { return r.TokenDuration > 0 }

// AccountName is the name of the ServiceAccount in use, or of the one to create. A long-lived token
// is in a Secret of that name.
func (r Request) AccountName() string { return cmp.Or(r.Account, r.base()) }

// origin is the id of the hub in its workers.
func (r Request) origin() v1alpha1.Origin { return cmp.Or(r.Origin, v1alpha1.Origin(r.HubUID)) }

// access returns the settings that decide the permissions.
func (r Request) access() workeraccess.Settings {
	return workeraccess.Settings{
		Origin:           r.origin(),
		Account:          r.AccountName(),
		Expires:          r.Bound(),
		JobController:    r.Spec.JobController,
		CreateNamespaces: ptr.Deref(r.Spec.CreateNamespaces, true),
		Capacity:         r.Spec.Capacity,
		Carry:            r.Spec.Carry,
		Logs:             slices.Contains(r.PodAccess, "logs"),
		Exec:             slices.Contains(r.PodAccess, "exec"),
		Delete:           slices.Contains(r.PodAccess, "delete"),
	}
}

// meta returns the metadata of an object in the worker.
func (r Request) meta(name, namespace string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: WorkerLabels(r.HubUID)}
}

const (
	labelPartOf = "app.kubernetes.io/part-of"
	partOf      = "jobferry"
)

// WorkerLabels returns the labels of a hub's objects in a worker.
func WorkerLabels(hub types.UID) map[string]string {
	labels := ourLabels()
	labels[v1alpha1.LabelHub] = string(hub)
	return labels
}

func ourLabels() map[string]string {
	return map[string]string{
		"app.kubernetes.io/managed-by": FieldManager,
		labelPartOf:                    partOf,
	}
}
