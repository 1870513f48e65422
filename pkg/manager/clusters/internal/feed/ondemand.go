package feed

import (
	"context"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/jobferry/jobferry/pkg/placement"
)

// onDemand gathers kinds from the first Job on that needs them, and namespaces also from the
// worker's first Pod on that selects them: most hubs have no such Job, and some workers very many
// objects. Only the supervisor calls start, stop and look.
//
// Volumes are gathered also where spec.capacity asks for no nodes: where a Job's claims are doesn't
// depend on these.
type onDemand struct {
	kinds []*kind
	// freed and wake tell the Jobs that wait, and the supervisor.
	freed, wake func()
	asked       atomic.Bool
	// settled: they have been listed, or lists have failed.
	settled atomic.Bool
}

// What is held of a worker's volumes.
const (
	maxVolumes       = 20_000 // claims, and PersistentVolumes
	maxVolumeBytes   = 48 << 20
	maxCSINodeBytes  = 16 << 20
	maxCapacities    = 20_000
	maxCapacityBytes = 24 << 20
)

// What is held of a worker's namespaces.
const (
	maxNamespaces     = 20_000
	maxNamespaceBytes = 24 << 20
)

func (g *gathering) namespaces(store *placement.Store) []*kind {
	return []*kind{kindOf(g, corev1.SchemeGroupVersion, "namespaces", store.Namespaces, &corev1.Namespace{}, maxNamespaces, maxNamespaceBytes)}
}

func (g *gathering) volumes(store *placement.Store) []*kind {
	core, storage := corev1.SchemeGroupVersion, storagev1.SchemeGroupVersion
	return []*kind{
		kindOf(g, core, "persistentvolumeclaims", store.Claims, &corev1.PersistentVolumeClaim{}, maxVolumes, maxVolumeBytes),
		kindOf(g, core, "persistentvolumes", store.PersistentVolumes, &corev1.PersistentVolume{}, maxVolumes, maxVolumeBytes),
		kindOf(g, storage, "storageclasses", store.StorageClasses, &storagev1.StorageClass{}, maxClasses, maxClassBytes),
		kindOf(g, storage, "csinodes", store.CSINodes, &storagev1.CSINode{}, maxNodes, maxCSINodeBytes),
		kindOf(g, storage, "csidrivers", store.CSIDrivers, &storagev1.CSIDriver{}, maxClasses, maxClassBytes),
		kindOf(g, storage, "csistoragecapacities", store.CSIStorageCapacities, &storagev1.CSIStorageCapacity{}, maxCapacities, maxCapacityBytes),
	}
}

// ask for the objects. Listing: they will be known soon.
func (d *onDemand) ask() (listing bool) {
	if !d.asked.Swap(true) {
		d.wake()
	}
	return !d.settled.Load()
}

// start starts the informers once somebody has asked, unless they run.
func (d *onDemand) start(ctx context.Context) {
	if !d.asked.Load() {
		return
	}
	for _, k := range d.kinds {
		k.start(ctx)
	}
}

func (d *onDemand) stop() {
	for _, k := range d.kinds {
		k.stop()
	}
}

// look tells the stores what is known, and returns why the rest isn't.
func (d *onDemand) look() (unchecked []string) {
	if !d.asked.Load() {
		return nil
	}
	unchecked, settled := lookAt(d.kinds)
	if settled && !d.settled.Swap(true) {
		d.freed()
	}
	return unchecked
}
