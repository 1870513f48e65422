package kueue

import (
	"context"
	"fmt"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/jobferry/jobferry/pkg/manager/dispatch"
)

// +kubebuilder:rbac:groups=kueue.x-k8s.io,resources=workloads;admissionchecks;multikueueconfigs;multikueueclusters;resourceflavors,verbs=get;list;watch

var crdKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

var informerDoesNotBlock = cache.BlockUntilSynced(false)

// byOwner is the index of Workloads by the UID of the Job that they stand for.
const byOwner = "jobferry.dev/owner"

// session is what there is while Kueue's CRDs are: caches of its objects, and the controllers that
// work on them.
type session struct {
	options   Options
	jobs      JobController
	namespace string // of the registration Secrets
	hub       client.Client
	live      client.Reader // past the cache
	objects   cache.Cache   // Kueue's
	workloads *workloads
	checks    *checks
	remotes   *remotes

	controllers []controller.Controller
}

func newSession(ctx context.Context, l *lifecycle) (*session, error) {
	objects, err := cache.New(l.mgr.GetConfig(), cache.Options{
		HTTPClient: l.mgr.GetHTTPClient(), Scheme: l.mgr.GetScheme(), Mapper: l.mgr.GetRESTMapper(),
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject:         map[client.Object]cache.ByObject{&kueue.Workload{}: {Transform: slimWorkload}},
	})
	if err != nil {
		return nil, fmt.Errorf("cache: %w", err)
	}
	s := &session{
		options: l.queues.options, jobs: l.queues.jobs, namespace: l.namespace,
		hub: l.mgr.GetClient(), live: l.mgr.GetAPIReader(), objects: objects,
	}
	if err := objects.IndexField(ctx, &kueue.Workload{}, byOwner, indexOwner); err != nil {
		return nil, fmt.Errorf("index of Workloads: %w", err)
	}
	s.workloads, s.checks, s.remotes = &workloads{session: s}, &checks{s}, newRemotes(s)
	for _, object := range []client.Object{
		&kueue.Workload{}, &kueue.AdmissionCheck{}, &kueue.MultiKueueConfig{}, &kueue.MultiKueueCluster{}, &kueue.ResourceFlavor{},
	} {
		if _, err := objects.GetInformer(ctx, object, informerDoesNotBlock); err != nil {
			return nil, fmt.Errorf("watch of %T: %w", object, err)
		}
	}
	return s, s.setup(l)
}

// setup makes the controllers.
func (s *session) setup(l *lifecycle) error {
	const workloadsAtATime = 8
	for _, c := range []struct {
		name    string
		do      reconcile.Reconciler
		atATime int
		sources []source.Source
	}{
		{"kueue-workload", s.workloads, workloadsAtATime, s.workloads.sources(l.mgr.GetCache())},
		{"kueue-admissioncheck", s.checks, 1, s.checks.sources(l.mgr.GetCache())},
		{"kueue-multikueuecluster", s.remotes, 1, s.remotes.sources(l.mgr.GetCache())},
	} {
		made, err := controller.NewUnmanaged(c.name, controller.Options{
			Reconciler: c.do, MaxConcurrentReconciles: c.atATime, Logger: l.mgr.GetLogger(),
			SkipNameValidation: ptr.To(true), // one after the other
		})
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		for _, from := range c.sources {
			if err := made.Watch(from); err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
		}
		s.controllers = append(s.controllers, made)
	}
	return nil
}

// run starts the session, and returns when its caches are filled; stop ends it, and returns when
// nothing of it runs any more. The controllers come last: what has been told by the hub's caches
// once is told for as long as the process lives, so a session that can't begin, and is tried again
// and again, must not have listened to them.
func (s *session) run(ctx context.Context) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	start := func(what string, f func(context.Context) error) {
		running.Go(func() {
			if err := f(ctx); err != nil && ctx.Err() == nil {
				log.FromContext(ctx).Error(err, "Kueue: ended by itself", "part", what)
			}
		})
	}
	stop = func() {
		cancel()
		running.Wait()
	}
	start("cache", s.objects.Start)
	wait, done := context.WithTimeout(ctx, syncTimeout)
	defer done()
	if !s.objects.WaitForCacheSync(wait) {
		stop()
		return nil, fmt.Errorf("the objects of %s can't be listed; does the manager have the permissions?", kueue.SchemeGroupVersion)
	}
	for _, c := range s.controllers {
		start("controller", c.Start)
	}
	return stop, nil
}

// slimWorkload drops what is big and never read: the templates of the Pods.
func slimWorkload(object any) (any, error) {
	if w, ok := object.(*kueue.Workload); ok {
		w.ManagedFields, w.Spec.PodSets = nil, nil
	}
	return object, nil
}

func indexOwner(object client.Object) []string {
	if w, ok := object.(*kueue.Workload); ok {
		if owner, isJob := ownerOf(w); isJob {
			return []string{string(owner.UID)}
		}
	}
	return nil
}

// admission is what Kueue decides about a Job, from the caches.
func (s *session) admission(ctx context.Context, job *batchv1.Job) dispatch.Admission {
	w := s.workloadOf(ctx, job)
	if w == nil {
		return dispatch.Admission{}
	}
	gates := s.gatesOf(ctx, w)
	if len(gates) == 0 {
		return dispatch.Admission{}
	}
	return admissionOf(job, w, gates, s.flavorsOf(ctx, w))
}
