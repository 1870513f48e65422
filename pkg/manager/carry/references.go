package carry

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// defaultServiceAccount exists in every namespace, also in the worker.
const defaultServiceAccount = "default"

// References returns what the Pods of a template need of the kinds that can be carried, each object
// once, sorted by kind and name.
func References(template *corev1.PodTemplateSpec) []Ref {
	spec, refs := &template.Spec, refSet{}
	if spec.ServiceAccountName != defaultServiceAccount {
		refs.add(ServiceAccount, spec.ServiceAccountName, false)
	}
	refs.addPullSecrets(spec.ImagePullSecrets)
	for i := range spec.Volumes {
		refs.addVolume(&spec.Volumes[i])
	}
	for i := range spec.InitContainers {
		refs.addContainer(spec.InitContainers[i].EnvFrom, spec.InitContainers[i].Env)
	}
	for i := range spec.Containers {
		refs.addContainer(spec.Containers[i].EnvFrom, spec.Containers[i].Env)
	}
	for i := range spec.EphemeralContainers {
		refs.addContainer(spec.EphemeralContainers[i].EnvFrom, spec.EphemeralContainers[i].Env)
	}
	return refs.sorted()
}

// PullSecrets returns a ServiceAccount's imagePullSecrets.
func PullSecrets(account *corev1.ServiceAccount) []Ref {
	refs := refSet{}
	refs.addPullSecrets(account.ImagePullSecrets)
	return refs.sorted()
}

// addPullSecrets adds optional references: the kubelet pulls without missing ones.
func (s refSet) addPullSecrets(secrets []corev1.LocalObjectReference) {
	for _, secret := range secrets {
		s.add(Secret, secret.Name, true)
	}
}

func (s refSet) addContainer(from []corev1.EnvFromSource, env []corev1.EnvVar) {
	for _, source := range from {
		if c := source.ConfigMapRef; c != nil {
			s.add(ConfigMap, c.Name, ptr.Deref(c.Optional, false))
		}
		if c := source.SecretRef; c != nil {
			s.add(Secret, c.Name, ptr.Deref(c.Optional, false))
		}
	}
	for _, variable := range env {
		if variable.ValueFrom == nil {
			continue
		}
		if c := variable.ValueFrom.ConfigMapKeyRef; c != nil {
			s.add(ConfigMap, c.Name, ptr.Deref(c.Optional, false))
		}
		if c := variable.ValueFrom.SecretKeyRef; c != nil {
			s.add(Secret, c.Name, ptr.Deref(c.Optional, false))
		}
	}
}

func (s refSet) addVolume(volume *corev1.Volume) {
	if c := volume.ConfigMap; c != nil {
		s.add(ConfigMap, c.Name, ptr.Deref(c.Optional, false))
	}
	if c := volume.Secret; c != nil {
		s.add(Secret, c.SecretName, ptr.Deref(c.Optional, false))
	}
	if volume.Projected != nil {
		s.addProjections(volume.Projected.Sources)
	}
	if c := volume.AzureFile; c != nil {
		s.add(Secret, c.SecretName, false)
	}
	for _, secret := range driverSecrets(&volume.VolumeSource) {
		if secret != nil {
			s.add(Secret, secret.Name, false)
		}
	}
}

func (s refSet) addProjections(sources []corev1.VolumeProjection) {
	for _, source := range sources {
		if c := source.ConfigMap; c != nil {
			s.add(ConfigMap, c.Name, ptr.Deref(c.Optional, false))
		}
		if c := source.Secret; c != nil {
			s.add(Secret, c.Name, ptr.Deref(c.Optional, false))
		}
	}
}

// driverSecrets are the Secrets that a volume's driver is given; nil where there is none.
func driverSecrets(v *corev1.VolumeSource) []*corev1.LocalObjectReference {
	var secrets []*corev1.LocalObjectReference
	if v.CSI != nil {
		secrets = append(secrets, v.CSI.NodePublishSecretRef)
	}
	if v.FlexVolume != nil {
		secrets = append(secrets, v.FlexVolume.SecretRef)
	}
	if v.ISCSI != nil {
		secrets = append(secrets, v.ISCSI.SecretRef)
	}
	if v.RBD != nil {
		secrets = append(secrets, v.RBD.SecretRef)
	}
	if v.CephFS != nil {
		secrets = append(secrets, v.CephFS.SecretRef)
	}
	if v.Cinder != nil {
		secrets = append(secrets, v.Cinder.SecretRef)
	}
	if v.ScaleIO != nil {
		secrets = append(secrets, v.ScaleIO.SecretRef)
	}
	if v.StorageOS != nil {
		secrets = append(secrets, v.StorageOS.SecretRef)
	}
	return secrets
}
