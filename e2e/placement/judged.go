package main

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/placement"
)

// snapshot is the pair as our judge knows it: as the manager does, of what it watches in a worker.
func (p *pair) snapshot(namespaces []*corev1.Namespace, minor int) *placement.Snapshot {
	store := placement.NewStore(func(placement.Change) {})
	for _, node := range p.Nodes {
		store.Ledger.SetNode(node)
	}
	for _, pod := range p.Pods {
		if pod.UID == "" {
			pod = pod.DeepCopy()
			pod.UID = types.UID(pod.Namespace + "/" + pod.Name)
		}
		store.Ledger.SetPod(pod)
		store.Bound.Set(pod)
	}
	watch(store.Namespaces, namespaces)
	watch(store.LimitRanges, p.LimitRanges)
	watch(store.Quotas, p.ResourceQuotas)
	watch(store.DeviceClasses, p.DeviceClasses)
	watch(store.ResourceSlices, p.ResourceSlices)
	watch(store.ResourceClaims, p.ResourceClaims)
	watch(store.ResourceClaimTemplates, p.ResourceClaimTemplates)
	if len(p.PriorityClasses) > 0 {
		watch(store.PriorityClasses, p.PriorityClasses)
	}
	if len(p.RuntimeClasses) > 0 {
		watch(store.RuntimeClasses, p.RuntimeClasses)
	}
	snapshot := store.Snapshot(types.NamespacedName{Namespace: p.Job.Namespace, Name: p.Job.Name}, minor, nil)
	snapshot.Preemption = p.Preemption
	if len(p.StorageClasses) > 0 {
		p.watchVolumes(store)
		snapshot.Volumes = store.Volumes()
	}
	return snapshot
}

func (o *volumeObjects) watchVolumes(store *placement.Store) {
	watch(store.Claims, o.PersistentVolumeClaims)
	watch(store.PersistentVolumes, o.PersistentVolumes)
	watch(store.StorageClasses, o.StorageClasses)
	watch(store.CSINodes, o.CSINodes)
	watch(store.CSIDrivers, o.CSIDrivers)
	watch(store.CSIStorageCapacities, o.CSIStorageCapacities)
}

// watch has the store know all objects of a kind.
func watch[T any](kind interface {
	Slim(T) T
	Set(T)
	Know(bool)
}, objects []T) {
	for _, o := range objects {
		kind.Set(kind.Slim(o))
	}
	kind.Know(true)
}
