package kueue

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	toolscache "k8s.io/client-go/tools/cache"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/jobferry/jobferry/pkg/util/wake"
)

// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=list;watch

var crdResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// crdWatch watches the names of CRDs, to notice when Kueue's API comes and goes. It has an informer
// of its own: the hub's cache waits for all of its informers, so that one that may not list would
// keep every controller from starting.
type crdWatch struct {
	informer toolscache.SharedIndexInformer
	changed  chan struct{} // buffers one
	refused  bool          // the manager lacks the right to watch, as logged
}

func newCRDWatch(client metadata.Interface, log logr.Logger) (*crdWatch, error) {
	w := &crdWatch{
		informer: metadatainformer.NewFilteredMetadataInformer(client, crdResource, metav1.NamespaceAll, 0, nil, nil).Informer(),
		changed:  make(chan struct{}, 1),
	}
	onError := func(ctx context.Context, r *toolscache.Reflector, err error) {
		switch {
		case !apierrors.IsForbidden(err):
			toolscache.DefaultWatchErrorHandler(ctx, r, err)
		case !w.refused:
			w.refused = true
			log.Error(err, "The manager may not list and watch CustomResourceDefinitions, and asks the hub for Kueue's API every "+pollInterval.String()+
				" instead: bind the ClusterRole jobferry-kueue, which the chart makes with kueue.enabled=true, or set --kueue-disabled")
		}
	}
	notify := func() { wake.Signal(w.changed) }
	if err := w.informer.SetWatchErrorHandlerWithContext(onError); err != nil {
		return nil, fmt.Errorf("watch of CRDs: %w", err)
	}
	if err := w.informer.SetTransform(nameOnly); err != nil {
		return nil, fmt.Errorf("watch of CRDs: %w", err)
	}
	_, err := w.informer.AddEventHandler(toolscache.FilteringResourceEventHandler{
		FilterFunc: isKueueCRD,
		Handler: toolscache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { notify() }, UpdateFunc: func(_, _ any) { notify() }, DeleteFunc: func(any) { notify() },
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watch of CRDs: %w", err)
	}
	return w, nil
}

// complete reports whether there are all CRDs that a session needs; known is false until the watch
// has synced.
func (w *crdWatch) complete() (complete, known bool) {
	missing := slices.ContainsFunc(resources, func(name string) bool {
		_, exists, err := w.informer.GetStore().GetByKey(crdName(name))
		return err != nil || !exists
	})
	return !missing, w.informer.HasSynced()
}

func crdName(resource string) string { return resource + "." + kueue.SchemeGroupVersion.Group }

func isKueueCRD(object any) bool {
	key, err := toolscache.DeletionHandlingObjectToName(object)
	return err == nil && slices.ContainsFunc(resources, func(name string) bool { return key.Name == crdName(name) })
}

// nameOnly drops all else of a CRD's metadata, which can be large.
func nameOnly(object any) (any, error) {
	if crd, ok := object.(*metav1.PartialObjectMetadata); ok {
		crd.ObjectMeta = metav1.ObjectMeta{Name: crd.Name, UID: crd.UID, ResourceVersion: crd.ResourceVersion}
	}
	return object, nil
}
