package placement

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// feature is something in a Job's spec that older API servers drop in silence, so that the Job
// would run there with another meaning.
type feature struct {
	// name is the field's, as users write it.
	name string
	// since is the minor version of Kubernetes 1 that first has it on by default: beta for most.
	// The source is each feature's gate.
	since int
	uses  func(*batchv1.JobSpec) bool
}

// features has the newest first, so that the explanation names what rules the cluster out for
// longest. Left out: what changes nothing about the run (hints, defaults that say what older
// versions do anyway), what is off by default everywhere, and edits such as the scaling of Indexed
// Jobs (1.27), which can't be seen in advance.
var features = []feature{
	{"restartPolicyRules", 35, inContainers(func(c *corev1.Container) bool { return len(c.RestartPolicyRules) > 0 })},
	{"container restartPolicy", 35, hasContainerRestartPolicy},
	{"fileKeyRef", 35, inContainers(hasFileKeyRef)},
	{"hostnameOverride", 35, inPod(func(p *corev1.PodSpec) bool { return p.HostnameOverride != nil })},
	{"image volumes", 35, inVolumes(func(v *corev1.Volume) bool { return v.Image != nil })},
	{"pod-level resources", 34, inPod(func(p *corev1.PodSpec) bool { return p.Resources != nil })},
	{"resourceClaims", 34, inPod(func(p *corev1.PodSpec) bool { return len(p.ResourceClaims) > 0 })},
	{"hostUsers: false", 33, inPod(func(p *corev1.PodSpec) bool { return p.HostUsers != nil && !*p.HostUsers })},
	{"supplementalGroupsPolicy", 33, inPod(hasSupplementalGroupsPolicy)},
	{"successPolicy", 31, func(j *batchv1.JobSpec) bool { return j.SuccessPolicy != nil }},
	{"recursiveReadOnly", 31, inContainers(hasRecursiveReadOnly)},
	{"backoffLimitPerIndex", 29, func(j *batchv1.JobSpec) bool { return j.BackoffLimitPerIndex != nil }},
	{"podReplacementPolicy", 29, delaysReplacement},
	{"sidecar containers", 29, inPod(hasSidecars)},
	{"schedulingGates", 27, inPod(func(p *corev1.PodSpec) bool { return len(p.SchedulingGates) > 0 })},
	{"podFailurePolicy", 26, func(j *batchv1.JobSpec) bool { return j.PodFailurePolicy != nil }},
}

// managedBy is what a mirror of the embedded Job controller needs: an API server that drops the
// field would have the built-in run the Job, too.
var managedBy = feature{name: "managedBy", since: 32}

// lacks is the first feature that the mirror of a Job would need and the cluster's version doesn't
// have.
func (c *Cluster) lacks(used []feature) (feature, bool) {
	if c.Minor == 0 {
		return feature{}, false
	}
	for _, f := range used {
		if c.Minor < f.since {
			return f, true
		}
	}
	embedded := c.JobController == v1alpha1.JobControllerEmbedded
	return managedBy, embedded && c.Minor < managedBy.since
}

// runs says which version of Kubernetes is there.
func (c *Cluster) runs() string {
	if c.Minor == 0 {
		return "runs Kubernetes unknown"
	}
	return fmt.Sprintf("runs Kubernetes 1.%d", c.Minor)
}

// featuresOf are the features that a Job uses, in the table's order.
func featuresOf(spec *batchv1.JobSpec) []feature {
	var used []feature
	for _, f := range features {
		if f.uses(spec) {
			used = append(used, f)
		}
	}
	return used
}

// delaysReplacement leaves out the values that the API server fills in, which say what versions
// before the field do.
func delaysReplacement(job *batchv1.JobSpec) bool {
	return job.PodReplacementPolicy != nil && *job.PodReplacementPolicy == batchv1.Failed &&
		job.PodFailurePolicy == nil
}

func hasSidecars(pod *corev1.PodSpec) bool {
	return slices.ContainsFunc(pod.InitContainers, isSidecar)
}

func isSidecar(c corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

func hasContainerRestartPolicy(job *batchv1.JobSpec) bool {
	pod := &job.Template.Spec
	return slices.ContainsFunc(pod.Containers, func(c corev1.Container) bool { return c.RestartPolicy != nil }) ||
		slices.ContainsFunc(pod.InitContainers, func(c corev1.Container) bool {
			return c.RestartPolicy != nil && !isSidecar(c)
		})
}

func hasFileKeyRef(c *corev1.Container) bool {
	return slices.ContainsFunc(c.Env, func(env corev1.EnvVar) bool {
		return env.ValueFrom != nil && env.ValueFrom.FileKeyRef != nil
	})
}

func hasRecursiveReadOnly(c *corev1.Container) bool {
	return slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool {
		return m.RecursiveReadOnly != nil && *m.RecursiveReadOnly != corev1.RecursiveReadOnlyDisabled
	})
}

func hasSupplementalGroupsPolicy(pod *corev1.PodSpec) bool {
	return pod.SecurityContext != nil && pod.SecurityContext.SupplementalGroupsPolicy != nil &&
		*pod.SecurityContext.SupplementalGroupsPolicy != corev1.SupplementalGroupsPolicyMerge
}

func inPod(uses func(*corev1.PodSpec) bool) func(*batchv1.JobSpec) bool {
	return func(job *batchv1.JobSpec) bool { return uses(&job.Template.Spec) }
}

func inContainers(uses func(*corev1.Container) bool) func(*batchv1.JobSpec) bool {
	return inPod(func(pod *corev1.PodSpec) bool {
		for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
			for i := range containers {
				if uses(&containers[i]) {
					return true
				}
			}
		}
		return false
	})
}

func inVolumes(uses func(*corev1.Volume) bool) func(*batchv1.JobSpec) bool {
	return inPod(func(pod *corev1.PodSpec) bool {
		for i := range pod.Volumes {
			if uses(&pod.Volumes[i]) {
				return true
			}
		}
		return false
	})
}
