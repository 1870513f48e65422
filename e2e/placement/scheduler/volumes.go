package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-helpers/storage/volume"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding"
)

// volumeObjects are what the scheduler reads of volumes.
type volumeObjects struct {
	PersistentVolumes      []*corev1.PersistentVolume
	PersistentVolumeClaims []*corev1.PersistentVolumeClaim
	StorageClasses         []*storagev1.StorageClass
	CSINodes               []*storagev1.CSINode
	CSIDrivers             []*storagev1.CSIDriver
	CSIStorageCapacities   []*storagev1.CSIStorageCapacity
}

// identify gives the objects what an API server does.
func (o *volumeObjects) identify() {
	for _, v := range o.PersistentVolumes {
		v.UID, v.ResourceVersion = types.UID(v.Name), "1"
	}
	for _, c := range o.PersistentVolumeClaims {
		c.UID, c.ResourceVersion = types.UID(c.Namespace+"/"+c.Name), "1"
	}
	for _, v := range o.PersistentVolumes {
		if r := v.Spec.ClaimRef; r != nil {
			r.UID = types.UID(r.Namespace + "/" + r.Name)
		}
	}
}

// claimsOfVolumes makes the claims of a new Pod's ephemeral volumes, as kube-controller-manager
// does.
func claimsOfVolumes(pod *corev1.Pod) []*corev1.PersistentVolumeClaim {
	var claims []*corev1.PersistentVolumeClaim
	for _, v := range pod.Spec.Volumes {
		if v.Ephemeral == nil {
			continue
		}
		claim := &corev1.PersistentVolumeClaim{Spec: *v.Ephemeral.VolumeClaimTemplate.Spec.DeepCopy()}
		claim.Namespace, claim.Name = pod.Namespace, pod.Name+"-"+v.Name
		claim.UID, claim.ResourceVersion = types.UID(claim.Namespace+"/"+claim.Name), "1"
		claim.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(pod, corev1.SchemeGroupVersion.WithKind("Pod"))}
		claims = append(claims, claim)
	}
	return claims
}

// volumePlugin is the scheduler's VolumeBinding under a name of its own, which notes for which
// claims volumes are to be made.
const volumePlugin = "NotedVolumeBinding"

type notedVolumes struct{ *volumebinding.VolumeBinding }

func (notedVolumes) Name() string { return volumePlugin }

type notedBinder struct {
	volumebinding.SchedulerVolumeBinder
	made *[]*corev1.PersistentVolumeClaim
}

func (b notedBinder) AssumePodVolumes(logger klog.Logger, pod *corev1.Pod, node string, volumes *volumebinding.PodVolumes) (bool, error) {
	for _, p := range volumes.DynamicProvisions {
		*b.made = append(*b.made, p.PVC)
	}
	return b.SchedulerVolumeBinder.AssumePodVolumes(logger, pod, node, volumes)
}

// noting makes the plugin. Its types are those of the release.
func noting[H, P any](
	plain func(context.Context, runtime.Object, H, feature.Features) (P, error), made *[]*corev1.PersistentVolumeClaim,
) func(context.Context, runtime.Object, H) (P, error) {
	return func(ctx context.Context, args runtime.Object, handle H) (P, error) {
		plugin, err := plain(ctx, args, handle, feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate))
		if err != nil {
			return plugin, err
		}
		binding := any(plugin).(*volumebinding.VolumeBinding)
		binding.Binder = notedBinder{binding.Binder, made}
		return any(notedVolumes{binding}).(P), nil
	}
}

// provision makes a volume for a claim, wherever its class allows it, and binds them, as a driver
// and kube-controller-manager do.
func provision(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) (*corev1.PersistentVolume, *corev1.PersistentVolumeClaim) {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "made-" + claim.Name, UID: "made-" + claim.UID, ResourceVersion: "1"}}
	pv.Spec = corev1.PersistentVolumeSpec{
		Capacity: claim.Spec.Resources.Requests, AccessModes: claim.Spec.AccessModes, StorageClassName: class.Name,
		ClaimRef: &corev1.ObjectReference{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
	}
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: class.Provisioner, VolumeHandle: pv.Name}
	pv.Status.Phase = corev1.VolumeBound
	if len(class.AllowedTopologies) > 0 {
		pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{}}
	}
	for _, t := range class.AllowedTopologies {
		var term corev1.NodeSelectorTerm
		for _, e := range t.MatchLabelExpressions {
			term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{Key: e.Key, Operator: corev1.NodeSelectorOpIn, Values: e.Values})
		}
		terms := &pv.Spec.NodeAffinity.Required.NodeSelectorTerms
		*terms = append(*terms, term)
	}
	bound := claim.DeepCopy()
	bound.ResourceVersion = "2"
	bound.Spec.VolumeName, bound.Status.Phase = pv.Name, corev1.ClaimBound
	bound.Annotations = map[string]string{volume.AnnBindCompleted: "yes", volume.AnnBoundByController: "yes"}
	return pv, bound
}
