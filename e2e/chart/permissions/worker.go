package permissions

// fenced is why what the fence does isn't seen here.
const fenced = "only with a hub that has a fence: see e2e/fence"

// grouped is why what Jobs with spec.scheduling need isn't seen here.
const grouped = "only in a cluster of Kubernetes 1.37 or newer with the feature gate WorkloadWithJob: see pkg/worker"

// worker are the rights of jobferry-worker, the embedded Job controller, in its own cluster. It
// makes Pods for whoever may make Jobs, as the built-in does: the verb create on pods is what it is
// for.
var worker = []Row{
	{Part: Worker, Group: "batch", Resource: "jobs", Verbs: []string{"list", "watch"},
		Why: "which Jobs there are to run"},
	{Part: Worker, Group: "batch", Resource: "jobs", Verbs: []string{"get"},
		Why: "asks the API server before it adopts Pods, releases the Pods of a Job that seems gone, or first runs its part of a divided Job"},
	{Part: Worker, Group: "batch", Resource: "jobs", Verbs: []string{"delete"},
		Why: "ttlSecondsAfterFinished"},
	{Part: Worker, Group: "batch", Resource: "jobs/status", Verbs: []string{"update"},
		Why: "the Job's progress, and which of its indexes may run here, if it runs in several workers"},
	{Part: Worker, Group: "batch", Resource: "jobs/finalizers", Verbs: []string{"update"},
		Why: "Pods block the deletion of their Job until they are gone; whoever writes such a reference needs this",
		Unseen: map[string]string{"update": "no request of its own: admission (OwnerReferencesPermissionEnforcement) asks for " +
			"the right when a Pod is created"}},
	{Part: Worker, Resource: "pods", Verbs: []string{"list", "watch", "create", "delete"},
		Why: "the Pods of the Jobs"},
	{Part: Worker, Resource: "pods", Verbs: []string{"get"},
		Why:    "checks whether a Pod that is no longer needed has succeeded, before it gives the Pod up",
		Unseen: map[string]string{"get": "only for surplus Pods, and when the cache is behind"}},
	{Part: Worker, Resource: "pods", Verbs: []string{"patch"},
		Why: "its finalizer, so that it counts each Pod exactly once"},
	{Part: Worker, Resource: "events", Verbs: []string{"create", "patch"},
		Why: "what happens to Jobs; leader election", Unseen: map[string]string{"patch": repeated}},
	{Part: Worker, Group: "scheduling.k8s.io", Resource: "workloads", Verbs: []string{"get", "create", "patch"},
		Why:    "spec.scheduling of a Job: how its Pods are scheduled together",
		Unseen: map[string]string{"get": grouped, "create": grouped, "patch": grouped}},
	{Part: Worker, Group: "scheduling.k8s.io", Resource: "podgroups", Verbs: []string{"get", "create", "patch"},
		Why:    "spec.scheduling of a Job: the group that its Pods belong to",
		Unseen: map[string]string{"get": grouped, "create": grouped, "patch": grouped}},
	{Part: Worker, Namespace: Home, Group: "coordination.k8s.io", Resource: "leases", Verbs: []string{"create"},
		Why: "leader election: the Lease, at the first start"},
	{Part: Worker, Namespace: Home, Group: "coordination.k8s.io", Resource: "leases", Names: []string{"jobferry-worker"}, Verbs: []string{"get", "update"},
		Why: "leader election: one controller works at a time"},
	{Part: Worker, Namespace: Home, Group: "coordination.k8s.io", Resource: "leases", Verbs: []string{"list", "watch"},
		Why: "the fence: which hubs there are, and whether they're connected; leader election: a standby takes over at once"},
	{Part: Worker, Namespace: Home, Group: "coordination.k8s.io", Resource: "leases", Verbs: []string{"patch"},
		Why: "the fence: tells a hub after how long its Jobs are stopped", Unseen: map[string]string{"patch": fenced}},
	{Part: Worker, Group: "batch", Resource: "jobs", Verbs: []string{"patch"},
		Why: "the fence: marks the Jobs that it stops", Unseen: map[string]string{"patch": fenced}},
}

// dropIn are the further rights of jobferry-worker in the place of the built-in Job controller.
var dropIn = []Row{
	{Part: DropIn, Namespace: Home, Group: "batch", Resource: "jobs", Verbs: []string{"create"},
		Why: "the Job by which it notices another Job controller"},
	{Part: DropIn, Namespace: "kube-system", Resource: "serviceaccounts", Names: []string{"job-controller"}, Verbs: []string{"impersonate"},
		Why: "makes its requests as the built-in's account, where the admin chose that"},
}
