package permissions

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// repeated is why an event is patched.
const repeated = "only when the same thing is told again within minutes"

// standby is why a verb isn't used where one replica runs.
const standby = "only where a second replica waits to lead: see pkg/util/process"

// table is in the order of the documentation.
var table = slices.Concat(hub, carry, subresources, pods, admission, kueue, metrics, worker, dropIn, users)

// hub are the manager's rights, on the hub.
var hub = []Row{
	{Part: Manager, Group: "batch", Resource: "jobs", Verbs: []string{"list", "watch"},
		Why: "finds the Jobs; of those that aren't Jobferry's it keeps only the names"},
	{Part: Manager, Group: "batch", Resource: "jobs", Verbs: []string{"get"},
		Why:    "before it removes a mirror without a hub Job, it asks the hub whether the Job is gone",
		Unseen: map[string]string{"get": "only for mirrors that nobody waits for, as after a restart"}},
	{Part: Manager, Group: "jobset.x-k8s.io", Resource: "jobsets", Verbs: []string{"get"},
		Why:    "which Jobs a JobSet will have, when its first Job is placed",
		Unseen: map[string]string{"get": "only on a hub with JobSet"}},
	{Part: Manager, Group: "batch", Resource: "jobs/status", Verbs: []string{"patch"},
		Why: "the worker's status when it has passed the rules; the placement; the finalizer, which such a patch can also change"},
	{Part: Manager, Resource: "namespaces", Names: []string{"kube-system"}, Verbs: []string{"get"},
		Why: "its UID is the id of this hub in the workers"},
	{Part: Manager, Group: "scheduling.k8s.io", Resource: "priorityclasses", Verbs: []string{"list", "watch"},
		Why: "which of the waiting Jobs goes first"},
	{Part: Manager, Resource: "namespaces", Verbs: []string{"list", "watch"},
		Why: "their labels: whose Jobs are dispatched, to which workers, and with which Pod Security there"},
	{Part: Manager, Group: "jobferry.dev", Resource: "workerclusters", Verbs: []string{"list", "watch"},
		Why: "the workers and their settings"},
	{Part: Manager, Group: "jobferry.dev", Resource: "workerclusters", Verbs: []string{"create", "delete"},
		Why: "the manager creates one for each registration, and deletes it with the registration"},
	{Part: Manager, Group: "jobferry.dev", Resource: "workerclusters/status", Verbs: []string{"patch"},
		Why: "what it finds in the workers"},
	{Part: Manager, Group: "events.k8s.io", Resource: "events", Verbs: []string{"create", "patch"},
		Why: "what happens to Jobs and workers", Unseen: map[string]string{"patch": repeated}},
	{Part: Manager, Namespace: Home, Resource: "secrets", Verbs: []string{"list", "watch"},
		Why: "the registrations: kubeconfigs of the workers. No other namespace's Secrets can be read"},
	{Part: Manager, Namespace: Home, Resource: "secrets", Verbs: []string{"get", "patch"},
		Why: "the finalizer on registrations, which keeps the credentials until the worker is removed"},
	{Part: Manager, Namespace: Home, Group: "coordination.k8s.io", Resource: "leases", Verbs: []string{"create"},
		Why: "leader election: the Lease, at the first start"},
	{Part: Manager, Namespace: Home, Group: "coordination.k8s.io", Resource: "leases", Names: []string{"jobferry-manager"}, Verbs: []string{"get", "update", "watch"},
		Why:    "leader election: one manager dispatches at a time, and the next takes over at once",
		Unseen: map[string]string{"watch": standby}},
	{Part: Manager, Namespace: Home, Group: "coordination.k8s.io", Resource: "leases", Names: []string{"jobferry-writer"}, Verbs: []string{"get", "update"},
		Why: "one writer: tells the hub apart from a copy of it"},
	{Part: Manager, Namespace: Home, Resource: "events", Verbs: []string{"create", "patch"},
		Why: "leader election: who leads", Unseen: map[string]string{"patch": repeated}},
}

// carry are what copying along with Jobs takes on the hub: rows for one kind each, as each can be
// granted by itself.
var carry = []Row{
	carried("configmaps"), carried("secrets"), carried("serviceaccounts"), carried("services"),
}

func carried(resource string) Row {
	return Row{Part: Carry, Resource: resource, Verbs: []string{"get", "list", "watch"},
		Why: "copies of what Jobs refer to; only with carry.kinds. Contents are read one by one, names and versions are watched"}
}

// subresources are what the aggregated API takes, in every replica. Some of it the leader has
// anyway; a replica that serves needs it all the same, so it's listed in full.
var subresources = []Row{
	{Part: Subresources, Group: "batch", Resource: "jobs", Verbs: []string{"get", "list", "watch"},
		Why: "the Job that is asked about; the table of Jobs (dispatchedjobs) for users who may see it"},
	{Part: Subresources, Resource: "events", Verbs: []string{"list", "watch"}, Why: "its own events, which say why Jobs wait, for the table of Jobs"},
	{Part: Subresources, Group: "jobferry.dev", Resource: "workerclusters", Verbs: []string{"get", "list", "watch"},
		Why: "its worker, and whether that's connected; which workers are out of touch, for the table of Jobs"},
	{Part: Subresources, Resource: "namespaces", Names: []string{"kube-system"}, Verbs: []string{"get"},
		Why: "its UID is the id of this hub in the workers"},
	{Part: Subresources, Group: "authorization.k8s.io", Resource: "subjectaccessreviews", Verbs: []string{"create"},
		Why: "whether the user may"},
	{Part: Subresources, Namespace: Home, Resource: "secrets", Verbs: []string{"get"}, Why: "the worker's kubeconfig"},
	{Part: Subresources, Namespace: Home, Resource: "secrets", Verbs: []string{"list", "watch", "patch"},
		Why: "the certificate that it serves with, which all replicas share"},
	{Part: Subresources, Namespace: Home, Group: "coordination.k8s.io", Resource: "leases", Names: []string{"jobferry-manager"}, Verbs: []string{"get"},
		Why: "which replica leads: only the leader knows what is about to be placed"},
	{Part: Subresources, Group: "apiregistration.k8s.io", Resource: "apiservices", Names: []string{"v1alpha1.subresources.jobferry.dev"},
		Verbs: []string{"list", "watch", "patch"}, Why: "tells the hub that certificate"},
}

// pods are what it takes to show the Pods of Jobs on the hub, and to serve their logs and commands.
// As for subresources, it's listed in full.
var pods = []Row{
	{Part: Pods, Resource: "pods", Verbs: []string{"get"}, Why: "which Pod of a worker the one that is asked about stands for"},
	{Part: Pods, Group: "batch", Resource: "jobs", Verbs: []string{"get"}, Why: "its Job, and where that is placed"},
	{Part: Pods, Group: "jobferry.dev", Resource: "workerclusters", Verbs: []string{"get"}, Why: "its worker, and whether that's connected"},
	{Part: Pods, Resource: "namespaces", Names: []string{"kube-system"}, Verbs: []string{"get"}, Why: "its UID is the id of this hub in the workers"},
	{Part: Pods, Group: "authorization.k8s.io", Resource: "subjectaccessreviews", Verbs: []string{"create"},
		Why: "whether who asks for logs or commands may: it needs `nodes/proxy`, which the hub's API server has"},
	{Part: Pods, Namespace: Home, Resource: "secrets", Verbs: []string{"get"}, Why: "the worker's kubeconfig"},
	{Part: Pods, Resource: "pods", Verbs: []string{"list", "watch", "create", "delete"}, Why: "the Pods that show those of a worker, on its Node"},
	{Part: Pods, Resource: "pods/status", Verbs: []string{"patch"}, Why: "their status"},
	{Part: Pods, Resource: "nodes", Verbs: []string{"get", "list", "create"}, Why: "a Node for each worker, which it creates"},
	{Part: Pods, Resource: "nodes/status", Verbs: []string{"update"}, Why: "where the manager answers for that Node, and whether it does"},
	{Part: Pods, Namespace: corev1.NamespaceNodeLease, Group: "coordination.k8s.io", Resource: "leases", Verbs: []string{"get", "create", "update"},
		Why: "the heartbeat of that Node, as a kubelet's"},
	{Part: PodsCert, Group: "certificates.k8s.io", Resource: "certificatesigningrequests", Verbs: []string{"create", "list", "watch"},
		Why: "its request for a certificate of `kubernetes.io/kubelet-serving`, which somebody must approve"},
}

// admission are what the webhook takes, on hubs that need one.
var admission = []Row{
	{Part: Admission, Group: "admissionregistration.k8s.io", Resource: "mutatingwebhookconfigurations", Names: []string{"jobferry-dispatch"},
		Verbs: []string{"list", "watch", "patch"}, Why: "tells the hub the certificate that the webhook serves with"},
}

// metrics are what metrics by HTTPS take, in either program.
var metrics = []Row{
	{Part: MetricsAuth, Group: "authentication.k8s.io", Resource: "tokenreviews", Verbs: []string{"create"},
		Why: "who scrapes; only with metrics.secure"},
	{Part: MetricsAuth, Group: "authorization.k8s.io", Resource: "subjectaccessreviews", Verbs: []string{"create"},
		Why: "whether they may; only with metrics.secure"},
}

// withKueue is why what's done with Kueue isn't seen on a hub without it.
var withKueue = map[string]string{"get": onlyKueue, "list": onlyKueue, "watch": onlyKueue, "patch": onlyKueue, "create": onlyKueue, "update": onlyKueue}

const onlyKueue = "only on a hub with Kueue: e2e/kueue runs with these rights alone"

// kueue are what Kueue's AdmissionChecks take.
var kueue = []Row{
	{Part: Kueue, Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions", Verbs: []string{"list", "watch"},
		Why: "whether Kueue is installed"},
	queued("workloads", "which Job waits for its check, and what its quota assigned to it"),
	queued("admissionchecks", "the checks of controller jobferry.dev/dispatcher"),
	queued("multikueueconfigs", "which workers a check allows"),
	queued("multikueueclusters", "the workers that are registered with Kueue"),
	queued("resourceflavors", "the node selectors and tolerations that a Job gets by its quota"),
	{Part: Kueue, Group: "kueue.x-k8s.io", Resource: "workloads/status", Verbs: []string{"patch"},
		Why: "the state of the check: where the Job will run, or why nowhere", Unseen: withKueue},
	{Part: Kueue, Group: "kueue.x-k8s.io", Resource: "admissionchecks/status", Verbs: []string{"patch"},
		Why: "whether the check is active", Unseen: withKueue},
	{Part: Kueue, Group: "kueue.x-k8s.io", Resource: "multikueueclusters/status", Verbs: []string{"patch"},
		Why: "whether the worker is connected", Unseen: withKueue},
	{Part: Kueue, Namespace: Home, Resource: "secrets", Verbs: []string{"get", "create", "update"},
		Why: "the registration of a worker that's registered with Kueue", Unseen: withKueue},
}

func queued(resource, why string) Row {
	return Row{Part: Kueue, Group: "kueue.x-k8s.io", Resource: resource, Verbs: []string{"get", "list", "watch"}, Why: why, Unseen: withKueue}
}
