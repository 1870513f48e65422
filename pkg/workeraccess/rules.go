package workeraccess

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// Rule is one permission of a hub's credentials in a worker.
type Rule struct {
	// Group is the API group; empty: the core group.
	Group     string
	Resources []string
	// Names are the only objects it's about; none: all.
	Names []string
	Verbs []string
	// Namespace is the only one it holds in; empty: all.
	Namespace string
	// Need says for which workers it is given.
	Need Need
	// Why says what it's for.
	Why string
	// Without says what shows when it's missing.
	Without string
}

// rules are in the order in which a worker meets them.
var rules = []Rule{
	{Resources: []string{"namespaces"}, Names: []string{metav1.NamespaceSystem}, Verbs: []string{"get"}, Need: always,
		Why: "which cluster this is; probes", Without: "the WorkerCluster is `Forbidden`"},
	{Group: "batch", Resources: []string{"jobs"}, Verbs: []string{"list", "watch"}, Need: always,
		Why: "the mirrors and their status", Without: "the WorkerCluster is `Forbidden`"},
	{Group: "batch", Resources: []string{"jobs"}, Verbs: []string{"get", "create", "patch", "delete"}, Need: always,
		Why: "making, changing and removing mirrors", Without: "Jobs are `MirrorRefused`, or changes of them don't arrive"},
	{Group: "batch", Resources: []string{"jobs/status"}, Verbs: []string{"patch"}, Need: always,
		Why: "progress of a Job that comes from another worker", Without: "such Jobs stay suspended"},
	{Resources: []string{"namespaces"}, Verbs: []string{"create"}, Need: whenCreates,
		Why: "a Job's namespace is made when it's missing", Without: "Jobs of new namespaces are `MirrorRefused`"},
	{Resources: []string{"nodes", "pods"}, Verbs: []string{"list", "watch"}, Need: whenCounts,
		Why: "free capacity", Without: "the WorkerCluster is `CapacityUnknown`, Jobs are placed all the same"},
	{Resources: []string{"events"}, Verbs: []string{"list"}, Need: always,
		Why: "why a Job has no Pods; events shown at the hub", Without: "no reason is shown, and `kubectl jobferry events` says that the worker refuses it"},
	{Resources: []string{"persistentvolumeclaims"}, Verbs: []string{"get"}, Need: always,
		Why: "a Job goes where its claims are", Without: "that isn't checked, its Pods wait"},
	carried("configmaps", v1alpha1.CarryConfigMaps),
	carried("secrets", v1alpha1.CarrySecrets),
	carried("serviceaccounts", v1alpha1.CarryServiceAccounts),
	{Group: "coordination.k8s.io", Resources: []string{"leases"}, Verbs: []string{"create", "patch", "delete"},
		Namespace: v1alpha1.SystemNamespace, Need: whenFenced,
		Why: "the fence: it tells the worker that the hub is there", Without: "the WorkerCluster is `Fenced=False` (`LeaseForbidden`): a Job that is moved may run twice"},
	{Resources: []string{"pods"}, Verbs: []string{"get", "list"}, Need: whenPods,
		Why: "a Job's Pods, at the hub", Without: "`kubectl jobferry pods` says that the worker refuses it"},
	{Resources: []string{"pods/log"}, Verbs: []string{"get"}, Need: whenLogs,
		Why: "logs at the hub", Without: "`kubectl jobferry logs` says that the worker refuses it"},
	{Resources: []string{"pods/exec"}, Verbs: []string{"get", "create"}, Need: whenExec,
		Why: "commands in a Job's Pods, from the hub", Without: "`kubectl jobferry exec` says that the worker refuses it"},
}

func carried(resource string, kind v1alpha1.CarriedKind) Rule {
	return Rule{Resources: []string{resource}, Verbs: []string{"get", "create", "update", "patch", "delete"},
		Need: whenCarries(kind), Why: "copies of what Jobs refer to", Without: "Jobs that need one are `FailedCarry`"}
}

// Rules is the whole table.
func Rules() []Rule { return slices.Clone(rules) }

// For selects the rules that a worker with these settings needs.
func For(s Settings) []Rule {
	return slices.DeleteFunc(Rules(), func(r Rule) bool { return !r.Need.Met(s) })
}
