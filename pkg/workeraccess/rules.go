package workeraccess

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// Rule is one permission of a hub's credentials in a worker.
type Rule struct {
	// Group is the API group; empty: the core group.
	Group     string
	Resources []string
	// Names are the only objects that it holds for; none: all.
	Names []string
	Verbs []string
	// Namespace is the only one it holds in; empty: those of the Jobs, which are all namespaces or a
	// list.
	Namespace string
	// Everywhere: it holds in all namespaces, also where the Jobs' namespaces are a list.
	Everywhere bool
	// Need tells which workers need it.
	Need Need
	// Why is the purpose.
	Why string
	// Without is what a user sees when it's missing.
	Without string
}

// rules are in the order in which the hub uses them.
var rules = []Rule{
	{Resources: []string{"namespaces"}, Names: []string{metav1.NamespaceSystem}, Verbs: []string{"get"}, Everywhere: true, Need: always,
		Why: "the cluster's identity; probes", Without: "the WorkerCluster is `Forbidden`"},
	// RBAC has no label selectors. One watch observes the mirrors of all namespaces.
	{Group: "batch", Resources: []string{"jobs"}, Verbs: []string{"list", "watch"}, Everywhere: true, Need: always,
		Why: "the mirrors and their status", Without: "the WorkerCluster is `Forbidden`"},
	{Group: "batch", Resources: []string{"jobs"}, Verbs: []string{"get", "create", "patch", "delete"}, Need: always,
		Why: "creating, changing and deleting mirrors", Without: "Jobs are `MirrorRefused`, or changes of them don't reach the worker"},
	{Group: "batch", Resources: []string{"jobs/status"}, Verbs: []string{"patch"}, Need: always,
		Why: "the progress of a Job that was moved here", Without: "such Jobs stay suspended"},
	{Resources: []string{"namespaces"}, Verbs: []string{"create"}, Everywhere: true, Need: whenCreates,
		Why: "creating a Job's namespace", Without: "Jobs of new namespaces are `MirrorRefused`"},
	{Resources: []string{"nodes", "pods"}, Verbs: []string{"list", "watch"}, Everywhere: true, Need: whenCounts,
		Why: "free capacity", Without: "the WorkerCluster is `CapacityUnknown`; Jobs are still placed"},
	{Resources: []string{"resourcequotas", "limitranges"}, Verbs: []string{"list", "watch"}, Everywhere: true, Need: whenCounts,
		Why: "which Pods the worker would refuse", Without: withoutCheck},
	{Resources: []string{"namespaces"}, Verbs: []string{"list", "watch"}, Everywhere: true, Need: whenCounts,
		Why: "affinity that selects namespaces by their labels; whether one that refuses Jobs is gone", Without: withoutNamespaces},
	{Group: "scheduling.k8s.io", Resources: []string{"priorityclasses"}, Verbs: []string{"list", "watch"}, Everywhere: true, Need: whenCounts,
		Why: "which Pods the worker would refuse", Without: withoutCheck},
	{Group: "node.k8s.io", Resources: []string{"runtimeclasses"}, Verbs: []string{"list", "watch"}, Everywhere: true, Need: whenCounts,
		Why: "what it adds to Pods", Without: withoutCheck},
	{Group: "resource.k8s.io", Resources: []string{"deviceclasses", "resourceslices", "resourceclaims", "resourceclaimtemplates"},
		Verbs: []string{"list", "watch"}, Everywhere: true, Need: whenCounts,
		Why: "free devices (DRA)", Without: withoutCheck},
	{Group: "karpenter.sh", Resources: []string{"nodepools"}, Verbs: []string{"list"}, Everywhere: true, Need: whenGrows,
		Why: "which nodes Karpenter can add", Without: "only `spec.autoscaling` says which nodes can be added"},
	{Group: "karpenter.sh", Resources: []string{"nodeclaims"}, Verbs: []string{"watch"}, Everywhere: true, Need: whenGrows,
		Why: "which nodes Karpenter can't get", Without: "the WorkerCluster is `PartlyChecked`; Jobs wait for such nodes for `podStartTimeout`"},
	{Resources: []string{"configmaps"}, Names: []string{"cluster-autoscaler-status"}, Verbs: []string{"get"}, Everywhere: true, Need: whenGrows,
		Why: "which node groups cluster-autoscaler can't extend", Without: "a node group that has just failed is asked for nodes again"},
	{Resources: []string{"persistentvolumeclaims", "persistentvolumes"}, Verbs: []string{"list", "watch"}, Everywhere: true, Need: always,
		Why: "a Job is placed where its claims are", Without: withoutVolumes},
	{Group: "storage.k8s.io", Resources: []string{"storageclasses", "csinodes", "csidrivers", "csistoragecapacities"},
		Verbs: []string{"list", "watch"}, Everywhere: true, Need: always,
		Why: "where volumes can be made and attached", Without: withoutVolumes},
	{Resources: []string{"events"}, Verbs: []string{"list"}, Need: always,
		Why: "why a Job has no Pods; events on the hub", Without: "no reason is shown, and `kubectl jobferry events` reports that the worker refuses it"},
	carried("configmaps", v1alpha1.CarryConfigMaps),
	carried("secrets", v1alpha1.CarrySecrets),
	carried("serviceaccounts", v1alpha1.CarryServiceAccounts),
	carried("services", v1alpha1.CarryServices),
	{Group: "coordination.k8s.io", Resources: []string{"leases"}, Names: []string{anyOrigin.WriterLease()}, Verbs: []string{"get", "update"},
		Namespace: v1alpha1.SystemNamespace, Need: always,
		Why: "one writer: the Lease by which a copy of the hub is kept out", Without: "the WorkerCluster is `Exclusive=False` (`Unguarded`): a copy of the hub writes there, too"},
	// The registration creates the Lease: a rule for create can't name it, and would allow the hub to
	// make the leader Lease of jobferry-worker and other hubs' Leases its own. jobferry-worker creates
	// the Lease again when somebody deletes it.
	{Group: "coordination.k8s.io", Resources: []string{"leases"}, Names: []string{anyOrigin.FenceLease()}, Verbs: []string{"patch"},
		Namespace: v1alpha1.SystemNamespace, Need: whenFenced,
		Why: "the fence: the Lease that the hub renews", Without: "the WorkerCluster is `Fenced=False` (`LeaseForbidden`): a Job that is moved may run twice"},
	// The one account that it may have tokens of is its own.
	{Resources: []string{"serviceaccounts/token"}, Names: []string{anyAccount}, Verbs: []string{"create"},
		Namespace: v1alpha1.SystemNamespace, Need: whenExpires,
		Why: "renewing its own token", Without: "the WorkerCluster is `TokenRenewed=False` (`RenewalFailed`)"},
	{Resources: []string{"pods"}, Verbs: []string{"get", "list"}, Need: whenPods,
		Why: "a Job's Pods, on the hub", Without: "`kubectl jobferry pods` reports that the worker refuses it"},
	{Resources: []string{"pods/log"}, Verbs: []string{"get"}, Need: whenLogs,
		Why: "logs, on the hub", Without: "`kubectl jobferry logs` reports that the worker refuses it"},
	{Resources: []string{"pods/exec"}, Verbs: []string{"get", "create"}, Need: whenExec,
		Why: "commands in a Job's Pods, from the hub", Without: "`kubectl jobferry exec` reports that the worker refuses it"},
	{Resources: []string{"pods/attach"}, Verbs: []string{"get", "create"}, Need: whenExec,
		Why: "attaching to a Job's Pods, from the hub", Without: "`kubectl jobferry attach` reports that the worker refuses it"},
	{Resources: []string{"pods/portforward"}, Verbs: []string{"get", "create"}, Need: whenExec,
		Why: "connecting to ports of a Job's Pods, from the hub", Without: "`kubectl jobferry port-forward` reports that the worker refuses it"},
	{Resources: []string{"pods"}, Verbs: []string{"delete"}, Need: whenDelete,
		Why: "a Pod that a user deletes on the hub, which shows it", Without: "the event `PodNotDeleted`; the Pod runs on"},
}

const withoutVolumes = "from the first Job with claims on, the WorkerCluster is `PartlyChecked`; Jobs are placed without this check"

const withoutNamespaces = "from the first Job or Pod with such affinity on, the WorkerCluster is `PartlyChecked`; Jobs are placed without this check"

const withoutCheck = "the WorkerCluster is `PartlyChecked`; Jobs are placed without this check"

func carried(resource string, kind v1alpha1.CarriedKind) Rule {
	return Rule{Resources: []string{resource}, Verbs: []string{"get", "create", "update", "patch", "delete"},
		Need: whenCarries(kind), Why: "copies of the objects that Jobs refer to", Without: "Jobs that need one are `FailedCarry`"}
}

// Rules returns all rules.
func Rules() []Rule { return slices.Clone(rules) }

// anyOrigin and anyAccount stand for the hub's in the names of objects.
const (
	anyOrigin  = v1alpha1.Origin("ORIGIN")
	anyAccount = "jobferry-hub-ID"
)

// For returns the rules that a worker with these settings needs.
func For(s Settings) []Rule {
	needed := slices.DeleteFunc(Rules(), func(r Rule) bool { return !r.Need.Met(s) })
	for i, r := range needed {
		switch {
		case slices.Contains(r.Names, anyOrigin.FenceLease()):
			needed[i].Names = []string{s.Origin.FenceLease()}
		case slices.Contains(r.Names, anyOrigin.WriterLease()):
			needed[i].Names = []string{s.Origin.WriterLease()}
		case slices.Contains(r.Names, anyAccount):
			needed[i].Names = []string{s.Account}
		}
	}
	return needed
}

// ClusterRules returns the rules for a ClusterRole, of a worker whose Jobs may be in any namespace.
func ClusterRules(from []Rule) []rbacv1.PolicyRule {
	return policies(from, func(r Rule) bool { return r.Namespace == "" })
}

// LimitedClusterRules returns the rules for a ClusterRole, of a worker whose Jobs may be in some
// namespaces only.
func LimitedClusterRules(from []Rule) []rbacv1.PolicyRule {
	return policies(from, func(r Rule) bool { return r.Everywhere })
}

// JobRules returns the rules for a Role in each of these namespaces.
func JobRules(from []Rule) []rbacv1.PolicyRule {
	return policies(from, func(r Rule) bool { return r.Namespace == "" && !r.Everywhere })
}

// NamespaceRules returns the rules that hold only in Jobferry's own namespace, for a Role there.
func NamespaceRules(from []Rule) []rbacv1.PolicyRule {
	return policies(from, func(r Rule) bool { return r.Namespace != "" })
}

func policies(from []Rule, selected func(Rule) bool) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for _, r := range from {
		if selected(r) {
			out = append(out, rbacv1.PolicyRule{
				APIGroups: []string{r.Group}, Resources: r.Resources, ResourceNames: r.Names, Verbs: r.Verbs,
			})
		}
	}
	return out
}
