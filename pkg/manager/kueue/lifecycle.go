package kueue

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=list;watch

const (
	// recheck is how often the hub is asked for Kueue's API while what it serves isn't what its
	// CRDs say: it comes a little later than they do, or is of another version.
	recheck = time.Minute
	// retryLook is the same after a failure.
	retryLook = 2 * time.Second
	// syncTimeout bounds the start of a session.
	syncTimeout = 10 * time.Second
)

// resources are what a session needs of Kueue's API.
var resources = []string{"admissionchecks", "workloads", "multikueueconfigs", "multikueueclusters", "resourceflavors"}

// lifecycle keeps a session for as long as Kueue's CRDs are there.
type lifecycle struct {
	queues    *Queues
	mgr       ctrl.Manager
	namespace string
	changed   chan struct{} // has room for one
	stop      func()        // of the session; nil: there is none

	mu   sync.Mutex
	crds sets.Set[string] // Kueue's that there are, by name
}

func newLifecycle(q *Queues, mgr ctrl.Manager, namespace string) *lifecycle {
	return &lifecycle{queues: q, mgr: mgr, namespace: namespace, changed: make(chan struct{}, 1), crds: sets.New[string]()}
}

// Start watches for Kueue's CRDs until the context ends; the manager calls it.
func (l *lifecycle) Start(ctx context.Context) error {
	ctx = log.IntoContext(ctx, l.mgr.GetLogger().WithName("kueue"))
	api, err := discovery.NewDiscoveryClientForConfigAndClient(l.mgr.GetConfig(), l.mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("kueue: %w", err)
	}
	if err := l.watchCRDs(ctx); err != nil {
		return fmt.Errorf("kueue: %w", err)
	}
	defer l.end()
	for ctx.Err() == nil {
		err := l.look(ctx, api)
		wait := l.patience()
		if err != nil {
			log.FromContext(ctx).Error(err, "Can't tell what Kueue says; Jobs that name a queue wait")
			wait = time.After(retryLook)
			if !l.queues.failed.Swap(true) {
				l.queues.jobs.EnqueueUnplaced()
			}
		}
		select {
		case <-l.changed:
		case <-wait:
		case <-ctx.Done():
		}
	}
	return nil
}

// watchCRDs has it noticed when Kueue's CRDs come or go. Only their names are kept.
func (l *lifecycle) watchCRDs(ctx context.Context) error {
	crds := &metav1.PartialObjectMetadata{}
	crds.SetGroupVersionKind(crdKind)
	informer, err := l.mgr.GetCache().GetInformer(ctx, crds, informerDoesNotBlock)
	if err != nil {
		return err
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(crd any) { l.crdChanged(crd, true) },
		UpdateFunc: func(_, crd any) { l.crdChanged(crd, true) },
		DeleteFunc: func(crd any) { l.crdChanged(crd, false) },
	})
	return err
}

func (l *lifecycle) crdChanged(object any, exists bool) {
	if gone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	crd, ok := object.(metav1.Object)
	if !ok || !strings.HasSuffix(crd.GetName(), "."+kueue.SchemeGroupVersion.Group) {
		return
	}
	l.mu.Lock()
	if exists {
		l.crds.Insert(crd.GetName())
	} else {
		l.crds.Delete(crd.GetName())
	}
	l.mu.Unlock()
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// patience is how long to wait for the next look without any event: for ever, if there's a session
// just when there are the CRDs that it needs. It's called after a look.
func (l *lifecycle) patience() <-chan time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	complete := !slices.ContainsFunc(resources, func(name string) bool {
		return !l.crds.Has(name + "." + kueue.SchemeGroupVersion.Group)
	})
	if complete == (l.stop != nil) {
		return nil
	}
	return time.After(recheck)
}

// look begins or ends the session as the hub serves Kueue's API or not.
func (l *lifecycle) look(ctx context.Context, api discovery.DiscoveryInterface) error {
	served, err := isServed(api)
	if err != nil {
		return err
	}
	switch {
	case served && l.stop == nil:
		if err := l.begin(ctx); err != nil {
			return err
		}
		log.FromContext(ctx).Info("Kueue is there: AdmissionChecks are kept", "controllerName", v1alpha1.ManagedByDispatcher)
	case !served && l.stop != nil:
		l.end()
		log.FromContext(ctx).Info("Kueue's CRDs are gone")
	case l.queues.known.Load():
		return nil
	}
	l.queues.known.Store(true)
	l.queues.failed.Store(false)
	l.queues.jobs.EnqueueUnplaced()
	return nil
}

// isServed says whether all that a session needs is there.
func isServed(api discovery.DiscoveryInterface) (bool, error) {
	list, err := api.ServerResourcesForGroupVersion(kueue.SchemeGroupVersion.String())
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	has := func(name string) bool {
		return slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == name })
	}
	return !slices.ContainsFunc(resources, func(name string) bool { return !has(name) }), nil
}

// begin starts a session, and returns when its caches are filled.
func (l *lifecycle) begin(ctx context.Context) error {
	s, err := newSession(ctx, l)
	if err != nil {
		return err
	}
	if l.stop, err = s.run(ctx); err != nil {
		return err
	}
	l.queues.session.Store(s)
	return nil
}

func (l *lifecycle) end() {
	if l.stop == nil {
		return
	}
	l.queues.session.Store(nil)
	l.stop()
	l.stop = nil
}
