package stockout

import (
	"crypto/sha256"
	"encoding/hex"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/jobferry/jobferry/pkg/placement"
)

// Fingerprint names what the scheduler looks at in the Pods of a Job: Jobs with the same name of it
// find nodes where the others do, unless their namespaces make the difference. What is looked up in
// a namespace, such as a claim, is another shape in each.
func Fingerprint(job *batchv1.Job) string {
	from := &job.Spec.Template.Spec
	read := batchv1.Job{Spec: batchv1.JobSpec{Scheduling: job.Spec.Scheduling, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		Affinity: from.Affinity, TopologySpreadConstraints: from.TopologySpreadConstraints, SchedulerName: from.SchedulerName,
		PriorityClassName: from.PriorityClassName, RuntimeClassName: from.RuntimeClassName, ResourceClaims: from.ResourceClaims,
		SchedulingGates: from.SchedulingGates, HostNetwork: from.HostNetwork,
	}}}}
	read.Name = placement.ShapeOf(&job.Spec.Template).Key()
	spec := &read.Spec.Template.Spec
	for i := range from.Volumes {
		if v := &from.Volumes[i]; isRead(v) {
			spec.Volumes = append(spec.Volumes, *v)
		}
	}
	var ports corev1.Container
	for i := range from.Containers {
		for _, port := range from.Containers[i].Ports {
			if port.HostPort > 0 || spec.HostNetwork {
				ports.Ports = append(ports.Ports, port)
			}
		}
	}
	spec.Containers = []corev1.Container{ports}
	couples := len(spec.TopologySpreadConstraints) > 0 || spec.Affinity != nil && (spec.Affinity.PodAffinity != nil || spec.Affinity.PodAntiAffinity != nil)
	if couples {
		read.Spec.Template.Labels = job.Spec.Template.Labels
	}
	if couples || len(spec.Volumes)+len(spec.ResourceClaims) > 0 {
		read.Namespace = job.Namespace
	}
	// In protobuf: JSON would make six bytes of a character, and there may be a million. It can't
	// fail, and sorts maps.
	data, _ := read.Marshal()
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}

// isRead reports whether the scheduler looks at a volume: at its claim, its driver, or its disk,
// which may be in use or out of reach for reasons of its own.
func isRead(v *corev1.Volume) bool {
	return v.EmptyDir == nil && v.ConfigMap == nil && v.Secret == nil && v.DownwardAPI == nil && v.Projected == nil &&
		v.HostPath == nil && v.NFS == nil && v.Image == nil
}
