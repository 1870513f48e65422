package stockout

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/jobferry/jobferry/pkg/placement"
)

// Fingerprint names what the scheduler looks at in the Pods of a Job: Jobs with the same name of it
// find nodes where the others do, unless their namespaces make the difference. What is looked up in
// a namespace, such as a claim, is another shape in each.
func Fingerprint(job *batchv1.Job) string {
	spec := &job.Spec.Template.Spec
	shape := struct {
		Fits              string
		Affinity          *corev1.Affinity
		Spread            []corev1.TopologySpreadConstraint
		Labels            map[string]string
		Scheduler         string
		Priority, Runtime string
		Volumes           []corev1.Volume
		Claims            []corev1.PodResourceClaim
		Gates             []corev1.PodSchedulingGate
		HostNetwork       bool
		Ports             []corev1.ContainerPort
		Scheduling        *batchv1.JobSchedulingConfiguration
		Namespace         string
	}{
		Fits: placement.ShapeOf(&job.Spec.Template).Key(), Affinity: spec.Affinity, Spread: spec.TopologySpreadConstraints,
		Scheduler: spec.SchedulerName, Priority: spec.PriorityClassName, Claims: spec.ResourceClaims, Gates: spec.SchedulingGates,
		HostNetwork: spec.HostNetwork, Scheduling: job.Spec.Scheduling,
	}
	if spec.RuntimeClassName != nil {
		shape.Runtime = *spec.RuntimeClassName
	}
	for i := range spec.Volumes {
		if v := &spec.Volumes[i]; isRead(v) {
			shape.Volumes = append(shape.Volumes, *v)
		}
	}
	for i := range spec.Containers {
		for _, port := range spec.Containers[i].Ports {
			if port.HostPort > 0 || spec.HostNetwork {
				shape.Ports = append(shape.Ports, port)
			}
		}
	}
	couples := len(shape.Spread) > 0 || shape.Affinity != nil && (shape.Affinity.PodAffinity != nil || shape.Affinity.PodAntiAffinity != nil)
	if couples {
		shape.Labels = job.Spec.Template.Labels
	}
	if couples || len(shape.Volumes)+len(shape.Claims) > 0 {
		shape.Namespace = job.Namespace
	}
	// Plain data of API types: marshalling can't fail, and it sorts maps.
	data, _ := json.Marshal(shape)
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}

// isRead reports whether the scheduler looks at a volume: at its claim, its driver, or its disk,
// which may be in use or out of reach for reasons of its own.
func isRead(v *corev1.Volume) bool {
	return v.EmptyDir == nil && v.ConfigMap == nil && v.Secret == nil && v.DownwardAPI == nil && v.Projected == nil &&
		v.HostPath == nil && v.NFS == nil && v.Image == nil
}
