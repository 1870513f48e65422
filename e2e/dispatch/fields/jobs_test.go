package fields_test

import (
	"fmt"
	"math/rand/v2"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
)

// noPods keeps a Job from having Pods, as only its spec matters.
func noPods(j *batchv1.Job) { j.Spec.Parallelism = ptr.To[int32](0) }

func onlyOn(worker string) rigtest.Option { return ferrytest.OnWorker(worker) }

func stopSignal(j *batchv1.Job) {
	j.Spec.Template.Spec.OS = &corev1.PodOS{Name: corev1.Linux}
	main(j).Lifecycle = &corev1.Lifecycle{StopSignal: ptr.To(corev1.SIGUSR1)}
}

// gang has its Pods scheduled together.
func gang(j *batchv1.Job) {
	j.Spec.Scheduling = &batchv1.JobSchedulingConfiguration{
		SchedulingPolicy: &schedulingv1alpha3.WorkloadPodGroupSchedulingPolicy{
			Gang: &schedulingv1alpha3.WorkloadPodGroupGangSchedulingPolicy{MinCount: ptr.To[int32](1)},
		},
	}
}

func main(j *batchv1.Job) *corev1.Container { return &j.Spec.Template.Spec.Containers[0] }

// someOf chooses about half of the fields that Jobs can have in all releases.
func someOf(random *rand.Rand) []rigtest.Option {
	var some []rigtest.Option
	for _, option := range allFields() {
		if random.IntN(2) == 0 {
			some = append(some, option)
		}
	}
	return some
}

func allFields() []rigtest.Option {
	all := []rigtest.Option{stopSignal}
	for _, set := range []func(*batchv1.JobSpec){
		func(s *batchv1.JobSpec) { s.ActiveDeadlineSeconds = ptr.To[int64](3600) },
		func(s *batchv1.JobSpec) { s.BackoffLimit = ptr.To[int32](3) },
		func(s *batchv1.JobSpec) {
			s.BackoffLimitPerIndex, s.MaxFailedIndexes = ptr.To[int32](1), ptr.To[int32](2)
		},
		func(s *batchv1.JobSpec) { s.PodReplacementPolicy = ptr.To(batchv1.Failed) },
		func(s *batchv1.JobSpec) {
			s.SuccessPolicy = &batchv1.SuccessPolicy{Rules: []batchv1.SuccessPolicyRule{{SucceededIndexes: ptr.To("0-1"), SucceededCount: ptr.To[int32](1)}}}
		},
		func(s *batchv1.JobSpec) {
			s.PodReplacementPolicy = ptr.To(batchv1.Failed)
			s.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{
				{Action: batchv1.PodFailurePolicyActionIgnore, OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{
					{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}},
				{Action: batchv1.PodFailurePolicyActionCount, OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
					ContainerName: ptr.To("main"), Operator: batchv1.PodFailurePolicyOnExitCodesOpNotIn, Values: []int32{0, 1}}},
			}}
		},
	} {
		all = append(all, func(j *batchv1.Job) { set(&j.Spec) })
	}
	for _, set := range append(podFields(), volumes()...) {
		all = append(all, func(j *batchv1.Job) { set(&j.Spec.Template.Spec) })
	}
	for _, set := range containerFields() {
		all = append(all, func(j *batchv1.Job) { set(main(j)) })
	}
	return all
}

func podFields() []func(*corev1.PodSpec) {
	term := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"a", "b"}}}}
	near := corev1.PodAffinityTerm{
		TopologyKey: "zone", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}},
		NamespaceSelector: &metav1.LabelSelector{}, MatchLabelKeys: []string{"version"},
	}
	return []func(*corev1.PodSpec){
		func(p *corev1.PodSpec) { p.NodeSelector = map[string]string{"disk": "fast"} },
		func(p *corev1.PodSpec) {
			p.Tolerations = []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}, {Key: "x", Value: "y", Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](9)}}
		},
		func(p *corev1.PodSpec) {
			p.Affinity = &corev1.Affinity{
				NodeAffinity: &corev1.NodeAffinity{
					RequiredDuringSchedulingIgnoredDuringExecution:  &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}},
					PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 5, Preference: term}},
				},
				PodAffinity:     &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{near}},
				PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 1, PodAffinityTerm: near}}},
			}
		},
		func(p *corev1.PodSpec) {
			p.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
				MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: corev1.DoNotSchedule, MinDomains: ptr.To[int32](2), MatchLabelKeys: []string{"version"},
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}, NodeTaintsPolicy: ptr.To(corev1.NodeInclusionPolicyHonor),
			}}
		},
		func(p *corev1.PodSpec) { p.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.org/wait"}} },
		func(p *corev1.PodSpec) { p.SchedulerName, p.TerminationGracePeriodSeconds = "other", ptr.To[int64](5) },
		func(p *corev1.PodSpec) { p.HostUsers = ptr.To(false) },
		func(p *corev1.PodSpec) {
			p.HostAliases, p.Subdomain = []corev1.HostAlias{{IP: "10.1.2.3", Hostnames: []string{"a", "b"}}}, "sub"
		},
		func(p *corev1.PodSpec) {
			p.DNSPolicy = corev1.DNSNone
			p.DNSConfig = &corev1.PodDNSConfig{Nameservers: []string{"10.0.0.1"}, Searches: []string{"example.org"}, Options: []corev1.PodDNSConfigOption{{Name: "ndots", Value: ptr.To("2")}}}
		},
		func(p *corev1.PodSpec) {
			p.SecurityContext = &corev1.PodSecurityContext{
				RunAsUser: ptr.To[int64](1), RunAsNonRoot: ptr.To(true), FSGroup: ptr.To[int64](2), SupplementalGroups: []int64{3},
				SupplementalGroupsPolicy: ptr.To(corev1.SupplementalGroupsPolicyStrict), Sysctls: []corev1.Sysctl{{Name: "kernel.shm_rmid_forced", Value: "1"}},
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			}
		},
		func(p *corev1.PodSpec) {
			p.InitContainers = append(p.InitContainers,
				corev1.Container{Name: "proxy", Image: "example.org/proxy", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)},
				corev1.Container{Name: "prepare", Image: "example.org/prepare", Command: []string{"sh", "-c", "true"}})
		},
		func(p *corev1.PodSpec) {
			p.ReadinessGates, p.ShareProcessNamespace = []corev1.PodReadinessGate{{ConditionType: "example.org/ready"}}, ptr.To(true)
		},
		func(p *corev1.PodSpec) {
			p.ImagePullSecrets, p.AutomountServiceAccountToken, p.EnableServiceLinks = []corev1.LocalObjectReference{{Name: "pull"}}, ptr.To(false), ptr.To(false)
		},
	}
}

func volumes() []func(*corev1.PodSpec) {
	sources := []corev1.VolumeSource{
		{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: ptr.To(resource.MustParse("1Gi"))}},
		{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "c"},
			Optional: ptr.To(true), Items: []corev1.KeyToPath{{Key: "a", Path: "b", Mode: ptr.To[int32](0o400)}}}},
		{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{{Path: "name", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}}},
		{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}, Optional: ptr.To(true)}},
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: "a", ExpirationSeconds: ptr.To[int64](3600), Path: "token"}},
		}}},
		{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: ptr.To("fast"),
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		}}}},
		{CSI: &corev1.CSIVolumeSource{Driver: "csi.example.org", VolumeAttributes: map[string]string{"a": "b"}}},
	}
	all := make([]func(*corev1.PodSpec), 0, len(sources))
	for i, source := range sources {
		name := fmt.Sprintf("volume-%d", i)
		all = append(all, func(p *corev1.PodSpec) {
			p.Volumes = append(p.Volumes, corev1.Volume{Name: name, VolumeSource: source})
			c := &p.Containers[0]
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: "/" + name, ReadOnly: true, SubPathExpr: "$(A)"})
		})
	}
	return all
}

func containerFields() []func(*corev1.Container) {
	probe := func(handler corev1.ProbeHandler) *corev1.Probe {
		return &corev1.Probe{ProbeHandler: handler, InitialDelaySeconds: 3, PeriodSeconds: 4, FailureThreshold: 5}
	}
	return []func(*corev1.Container){
		func(c *corev1.Container) {
			c.Command, c.Args, c.WorkingDir = []string{"sh"}, []string{"-c", "true"}, "/work"
		},
		func(c *corev1.Container) {
			c.Env = []corev1.EnvVar{
				{Name: "B", Value: "b"},
				{Name: "CPU", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.cpu", Divisor: resource.MustParse("1m")}}},
				{Name: "KEY", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}, Key: "k", Optional: ptr.To(true)}}},
			}
			c.EnvFrom = []corev1.EnvFromSource{{Prefix: "P_", ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "c"}, Optional: ptr.To(true)}}}
		},
		func(c *corev1.Container) {
			c.Resources = corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")},
				Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1500m"), corev1.ResourceMemory: resource.MustParse("1.5Gi")},
			}
		},
		func(c *corev1.Container) {
			c.ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceCPU, RestartPolicy: corev1.NotRequired}}
		},
		func(c *corev1.Container) {
			c.LivenessProbe = probe(corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 80, Service: ptr.To("s")}})
			c.ReadinessProbe = probe(corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromString("http"), HTTPHeaders: []corev1.HTTPHeader{{Name: "a", Value: "b"}}}})
			c.StartupProbe = probe(corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}})
			c.Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: 80, Protocol: corev1.ProtocolTCP}}
		},
		func(c *corev1.Container) {
			if c.Lifecycle == nil {
				c.Lifecycle = &corev1.Lifecycle{}
			}
			c.Lifecycle.PreStop = &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 1}}
		},
		func(c *corev1.Container) {
			c.SecurityContext = &corev1.SecurityContext{
				AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined},
				Capabilities:    &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"NET_BIND_SERVICE"}},
				AppArmorProfile: &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined},
			}
		},
		func(c *corev1.Container) {
			c.TerminationMessagePolicy, c.ImagePullPolicy, c.Stdin, c.StdinOnce, c.TTY = corev1.TerminationMessageFallbackToLogsOnError, corev1.PullAlways, true, true, true
		},
	}
}
