package placement

import "github.com/jobferry/jobferry/pkg/placement/internal/change"

// What happens in workers, by the Jobs that it may help.
type (
	// Change is what a worker tells of.
	Change = change.Change
	// ChangeKinds are the kinds of a Change.
	ChangeKinds = change.Kinds
	// Changes are those of several workers, by name.
	Changes = change.Sets
)

// Kinds of changes.
const (
	// RoomChange: more resources are free.
	RoomChange = change.Room
	// NodesChange: some have come or gone, or have other labels, taints or sizes.
	NodesChange = change.Nodes
	// PodsChange: some are on other nodes, or namespaces by which Pods are selected have other
	// labels.
	PodsChange = change.Pods
	// AdmissionChange: what the API server admits Pods by, say a quota.
	AdmissionChange = change.Admission
	// DevicesChange: devices, and the claims for them.
	DevicesChange = change.Devices
	// VolumesChange: volumes, and the claims for them.
	VolumesChange = change.Volumes
	// AnyChange is of all kinds.
	AnyChange = change.All
)
