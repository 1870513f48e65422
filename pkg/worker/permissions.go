package worker

// What the controller asks of its cluster. docs/reference/rbac.md has the reasons; config/worker is
// made from these lines.
//
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=batch,resources=jobs/status,verbs=update
// +kubebuilder:rbac:groups=batch,resources=jobs/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=scheduling.k8s.io,resources=workloads;podgroups,verbs=get;create;patch
//
// Leader election, whose events the line above allows:
//
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=jobferry-system,resources=leases,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=jobferry-system,resources=leases,resourceNames=jobferry-worker,verbs=get;update
//
// A standby watches that Lease, which the line for the fence allows.
//
// The fence: the hubs' Leases are called jobferry-fence-<origin>; one that somebody has deleted is
// created again, which the line for leader election allows.
//
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=jobferry-system,resources=leases,verbs=list;watch;patch
