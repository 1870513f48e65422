package placement

import (
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// TestFeatures has, for each row of the table of features, a Job that uses it and nothing else.
func TestFeatures(t *testing.T) {
	tests := map[string]func(*batchv1.JobSpec, *corev1.PodSpec){
		"restartPolicyRules": func(_ *batchv1.JobSpec, p *corev1.PodSpec) {
			p.Containers[0].RestartPolicyRules = []corev1.ContainerRestartRule{{}}
		},
		"container restartPolicy": func(_ *batchv1.JobSpec, p *corev1.PodSpec) {
			p.Containers[0].RestartPolicy = ptr.To(corev1.ContainerRestartPolicyNever)
		},
		"fileKeyRef": func(_ *batchv1.JobSpec, p *corev1.PodSpec) {
			p.InitContainers[0].Env = []corev1.EnvVar{{ValueFrom: &corev1.EnvVarSource{FileKeyRef: &corev1.FileKeySelector{}}}}
		},
		"hostnameOverride": func(_ *batchv1.JobSpec, p *corev1.PodSpec) { p.HostnameOverride = ptr.To("h") },
		"image volumes": func(_ *batchv1.JobSpec, p *corev1.PodSpec) {
			p.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{}}}}
		},
		"pod-level resources": func(_ *batchv1.JobSpec, p *corev1.PodSpec) { p.Resources = &corev1.ResourceRequirements{} },
		"resourceClaims": func(_ *batchv1.JobSpec, p *corev1.PodSpec) {
			p.ResourceClaims = []corev1.PodResourceClaim{{}}
		},
		"hostUsers: false": func(_ *batchv1.JobSpec, p *corev1.PodSpec) { p.HostUsers = ptr.To(false) },
		"supplementalGroupsPolicy": func(_ *batchv1.JobSpec, p *corev1.PodSpec) {
			p.SecurityContext = &corev1.PodSecurityContext{SupplementalGroupsPolicy: ptr.To(corev1.SupplementalGroupsPolicyStrict)}
		},
		"successPolicy": func(j *batchv1.JobSpec, _ *corev1.PodSpec) { j.SuccessPolicy = &batchv1.SuccessPolicy{} },
		"recursiveReadOnly": func(_ *batchv1.JobSpec, p *corev1.PodSpec) {
			p.Containers[0].VolumeMounts = []corev1.VolumeMount{{RecursiveReadOnly: ptr.To(corev1.RecursiveReadOnlyEnabled)}}
		},
		"backoffLimitPerIndex": func(j *batchv1.JobSpec, _ *corev1.PodSpec) { j.BackoffLimitPerIndex = ptr.To[int32](1) },
		"podReplacementPolicy": func(j *batchv1.JobSpec, _ *corev1.PodSpec) { j.PodReplacementPolicy = ptr.To(batchv1.Failed) },
		"sidecar containers": func(_ *batchv1.JobSpec, p *corev1.PodSpec) {
			p.InitContainers[0].RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
		},
		"schedulingGates": func(_ *batchv1.JobSpec, p *corev1.PodSpec) {
			p.SchedulingGates = []corev1.PodSchedulingGate{{Name: "g"}}
		},
		"podFailurePolicy": func(j *batchv1.JobSpec, _ *corev1.PodSpec) { j.PodFailurePolicy = &batchv1.PodFailurePolicy{} },
	}
	for _, f := range features {
		use, ok := tests[f.name]
		if !ok {
			t.Errorf("%s has no test", f.name)
			continue
		}
		spec := plainSpec()
		use(spec, &spec.Template.Spec)
		used := featuresOf(spec)
		if len(used) != 1 || used[0].name != f.name {
			t.Errorf("%s: found %v", f.name, used)
			continue
		}
		if missing, lacks := (&Cluster{Minor: f.since - 1, JobController: v1alpha1.JobControllerBuiltIn}).lacks(used); !lacks || missing.name != f.name {
			t.Errorf("%s is missed by 1.%d: %t", f.name, f.since-1, lacks)
		}
		if _, lacks := (&Cluster{Minor: f.since, JobController: v1alpha1.JobControllerBuiltIn}).lacks(used); lacks {
			t.Errorf("%s is missed by 1.%d", f.name, f.since)
		}
	}
}

// TestDefaultsUseNoFeature: what the hub's API server fills in doesn't keep Jobs from older
// workers.
func TestDefaultsUseNoFeature(t *testing.T) {
	tests := map[string]func(*batchv1.JobSpec, *corev1.PodSpec){
		"plain": func(*batchv1.JobSpec, *corev1.PodSpec) {},
		"podReplacementPolicy": func(j *batchv1.JobSpec, _ *corev1.PodSpec) {
			j.PodReplacementPolicy = ptr.To(batchv1.TerminatingOrFailed)
		},
		"hostUsers": func(_ *batchv1.JobSpec, p *corev1.PodSpec) { p.HostUsers = ptr.To(true) },
		"supplementalGroupsPolicy": func(_ *batchv1.JobSpec, p *corev1.PodSpec) {
			p.SecurityContext = &corev1.PodSecurityContext{SupplementalGroupsPolicy: ptr.To(corev1.SupplementalGroupsPolicyMerge)}
		},
	}
	for name, change := range tests {
		spec := plainSpec()
		change(spec, &spec.Template.Spec)
		if used := featuresOf(spec); len(used) != 0 {
			t.Errorf("%s: found %v", name, used)
		}
	}
	spec := plainSpec()
	spec.PodFailurePolicy, spec.PodReplacementPolicy = &batchv1.PodFailurePolicy{}, ptr.To(batchv1.Failed)
	if used := featuresOf(spec); len(used) != 1 || used[0].name != "podFailurePolicy" {
		t.Errorf("podFailurePolicy with its default podReplacementPolicy: found %v", used)
	}
}

func TestFeaturesNewestFirst(t *testing.T) {
	if !slices.IsSortedFunc(features, func(a, b feature) int { return b.since - a.since }) {
		t.Error("the table isn't in order")
	}
}

func plainSpec() *batchv1.JobSpec {
	return &batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "init"}},
		Containers:     []corev1.Container{{Name: "main"}},
	}}}
}
