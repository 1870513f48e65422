package main

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
)

// objects are all that a scheduler knows besides nodes and Pods.
type objects struct {
	Namespaces     []*corev1.Namespace
	DeviceClasses  []*resourcev1.DeviceClass
	ResourceSlices []*resourcev1.ResourceSlice
	ResourceClaims []*resourcev1.ResourceClaim
	volumeObjects
}

// tell gives the objects to the informers of a scheduler that isn't made yet.
func (o *objects) tell(factory informers.SharedInformerFactory) error {
	return errors.Join(
		know(factory, &corev1.Namespace{}, o.Namespaces),
		know(factory, &resourcev1.DeviceClass{}, o.DeviceClasses),
		know(factory, &resourcev1.ResourceSlice{}, o.ResourceSlices),
		know(factory, &resourcev1.ResourceClaim{}, o.ResourceClaims),
		know(factory, &corev1.PersistentVolume{}, o.PersistentVolumes),
		know(factory, &corev1.PersistentVolumeClaim{}, o.PersistentVolumeClaims),
		know(factory, &storagev1.StorageClass{}, o.StorageClasses),
		know(factory, &storagev1.CSINode{}, o.CSINodes),
		know(factory, &storagev1.CSIDriver{}, o.CSIDrivers),
		know(factory, &storagev1.CSIStorageCapacity{}, o.CSIStorageCapacities),
	)
}

// written are the objects that a scheduler writes to.
func (o *objects) written() []runtime.Object {
	written := make([]runtime.Object, 0, len(o.ResourceClaims))
	for _, c := range o.ResourceClaims {
		written = append(written, c)
	}
	return written
}
