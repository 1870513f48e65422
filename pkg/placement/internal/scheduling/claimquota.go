package scheduling

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/component-helpers/storage/volume"

	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
)

const (
	claimsField = "spec.template.spec.volumes or resourceClaims"
	// ofStorageClass is after the name of a class in a quota's names.
	ofStorageClass = ".storageclass.storage.k8s.io/"
)

// claimed is what quotas count of the claims that are made for each Pod of a Job: of its ephemeral
// volumes, and of ResourceClaimTemplates. The Pod is created before them, and waits until there is
// room for all.
func (s *Snapshot) claimed(j *Job, work *budget) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := range j.spec.Volumes {
		if e := j.spec.Volumes[i].Ephemeral; e != nil && e.VolumeClaimTemplate != nil {
			addTo(list, volumeUsage(&e.VolumeClaimTemplate.Spec))
		}
	}
	if s.Devices != nil {
		addTo(list, s.Devices.Claimed(j.namespace, j.spec, func(requests int) {
			work.spend(claimWork*requests, capacity.ClaimsField)
		}))
	}
	return list
}

// volumeUsage is what a PersistentVolumeClaim takes of quotas. Which class is the default there
// isn't known.
func volumeUsage(spec *corev1.PersistentVolumeClaimSpec) corev1.ResourceList {
	usage := corev1.ResourceList{corev1.ResourcePersistentVolumeClaims: one}
	if size, has := spec.Resources.Requests[corev1.ResourceStorage]; has {
		size = size.DeepCopy()
		size.RoundUp(0)
		usage[corev1.ResourceRequestsStorage] = size
	}
	class := volume.GetPersistentVolumeClaimClass(&corev1.PersistentVolumeClaim{Spec: *spec})
	for name, amount := range maps.Clone(usage) {
		if class != "" {
			usage[corev1.ResourceName(class+ofStorageClass)+name] = amount
		}
	}
	usage["count/"+corev1.ResourcePersistentVolumeClaims] = one
	return usage
}

func addTo(sum, more corev1.ResourceList) {
	for name, amount := range more {
		var total apiresource.Quantity
		if there, has := sum[name]; has {
			total = there.DeepCopy()
		}
		total.Add(amount)
		sum[name] = total
	}
}
