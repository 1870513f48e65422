package manager

// What the manager asks of the hub, but for its workers (package clusters) and what goes along with
// Jobs (package carry). docs/reference/rbac.md has the reasons; config/rbac is made from these
// lines.
//
// +kubebuilder:rbac:groups="",resources=namespaces,resourceNames=kube-system,verbs=get
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=list;watch
// +kubebuilder:rbac:groups=scheduling.k8s.io,resources=priorityclasses,verbs=list;watch
// +kubebuilder:rbac:groups=jobset.x-k8s.io,resources=jobsets,verbs=get
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch
// +kubebuilder:rbac:groups=batch,resources=jobs/status,verbs=patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create
//
// Leader election:
//
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=jobferry-system,resources=leases,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=jobferry-system,resources=leases,resourceNames=jobferry-manager,verbs=get;update;watch
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=jobferry-system,resources=leases,resourceNames=jobferry-writer,verbs=get;update
// +kubebuilder:rbac:groups="",namespace=jobferry-system,resources=events,verbs=create;patch
