package mirror

import batchv1 "k8s.io/api/batch/v1"

// The fence: the hub renews a Lease in each worker with the embedded Job
// controller, which stops this hub's Jobs when it hasn't been renewed for some
// time. So they have stopped when the hub lets them go on elsewhere.
const (
	// FenceNamespace is where the Leases are, in the workers.
	FenceNamespace = "jobferry-system"
	// AnnotationFenced on a mirror holds the time (RFC 3339) at which the embedded
	// Job controller fenced it. The controller sets it, and runs the mirror as if it
	// were suspended for as long as it's there; the hub takes it off a mirror that is
	// still placed there.
	AnnotationFenced = "jobferry.dev/fenced"
	// AnnotationWorkerLostTimeout on the Lease is the hub's time-out for this worker,
	// as a Go duration. The hub sets it.
	AnnotationWorkerLostTimeout = "jobferry.dev/worker-lost-timeout"
	// AnnotationFenceAfter on the Lease is how long after its expiry the embedded Job
	// controller fences this hub's Jobs, as a Go duration. The controller sets it.
	AnnotationFenceAfter = "jobferry.dev/fence-after"
)

// FenceLease returns the name of the Lease of this origin in a worker.
func (o Origin) FenceLease() string { return "jobferry-" + string(o) }

// Fenced says whether the worker has stopped a mirror because it didn't hear of its
// hub.
func Fenced(m *batchv1.Job) bool {
	_, fenced := m.Annotations[AnnotationFenced]
	return fenced
}
