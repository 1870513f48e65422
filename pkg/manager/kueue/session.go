package kueue

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	expiring "k8s.io/apimachinery/pkg/util/cache"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/manager/flapping"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/util/pages"
	"github.com/jobferry/jobferry/pkg/util/text"
)

// +kubebuilder:rbac:groups=kueue.x-k8s.io,resources=workloads;admissionchecks;multikueueconfigs;multikueueclusters;resourceflavors,verbs=get;list;watch

// byOwner is the index of Workloads by the UID of their Job.
const byOwner = "jobferry.dev/owner"

// session is the caches of Kueue's objects, and the controllers that reconcile them.
type session struct {
	options   Options
	jobs      JobController
	namespace string // of the registration Secrets
	hub       client.Client
	live      client.Reader // without a cache
	objects   cache.Cache   // Kueue's
	workloads *workloadReconciler

	controllers []controller.Controller
	watchError  atomic.Pointer[error] // the last one
}

func newSession(ctx context.Context, q *Queues, mgr ctrl.Manager, namespace string) (*session, error) {
	s := &session{
		options: q.options, jobs: q.jobs, namespace: namespace,
		hub: mgr.GetClient(), live: mgr.GetAPIReader(),
	}
	var err error
	s.objects, err = pages.NewCache(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject:         map[client.Object]cache.ByObject{&kueue.Workload{}: {Transform: slimWorkload}},
		DefaultWatchErrorHandler: func(ctx context.Context, r *toolscache.Reflector, err error) {
			s.watchError.Store(&err)
			toolscache.DefaultWatchErrorHandler(ctx, r, err)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("cache: %w", err)
	}
	if err := s.objects.IndexField(ctx, &kueue.Workload{}, byOwner, indexOwner); err != nil {
		return nil, fmt.Errorf("index of Workloads: %w", err)
	}
	for _, object := range []client.Object{
		&kueue.Workload{}, &kueue.AdmissionCheck{}, &kueue.MultiKueueConfig{}, &kueue.MultiKueueCluster{}, &kueue.ResourceFlavor{},
	} {
		if _, err := s.objects.GetInformer(ctx, object, cache.BlockUntilSynced(false)); err != nil {
			return nil, fmt.Errorf("watch of %T: %w", object, err)
		}
	}
	return s, s.setup(mgr)
}

// setup makes the controllers.
func (s *session) setup(mgr ctrl.Manager) error {
	s.workloads = &workloadReconciler{session: s, written: expiring.NewExpiring(), looked: expiring.NewExpiring(), flapping: flapping.NewPace(clock.RealClock{})}
	checks, clusters := &checkReconciler{s}, &clusterReconciler{s}
	for _, c := range []struct {
		name        string
		reconciler  reconcile.Reconciler
		concurrency int
		sources     []source.Source
	}{
		{"kueue-workload", s.workloads, 8, s.workloads.sources(mgr.GetCache())},
		{"kueue-admissioncheck", checks, 1, checks.sources(mgr.GetCache())},
		{"kueue-multikueuecluster", clusters, 1, clusters.sources(mgr.GetCache())},
	} {
		made, err := controller.NewUnmanaged(c.name, controller.Options{
			Reconciler: c.reconciler, MaxConcurrentReconciles: c.concurrency, Logger: mgr.GetLogger(),
			SkipNameValidation: ptr.To(true), // the next session has the same names
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

// run starts the session, and returns when its caches are filled; stop ends it, and waits for its
// goroutines. The controllers start last: the hub's cache keeps their event handlers for the life
// of the process, so a session that fails to start must not have registered any.
func (s *session) run(ctx context.Context) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	start := func(part string, f func(context.Context) error) {
		running.Go(func() {
			if err := f(ctx); err != nil && ctx.Err() == nil {
				log.FromContext(ctx).Error(err, "A part of the integration with Kueue has failed", "part", part)
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
		err := ptr.Deref(s.watchError.Load(), nil)
		return nil, fmt.Errorf("list the objects of %s: %w", kueue.SchemeGroupVersion, cmp.Or(err, context.DeadlineExceeded))
	}
	for _, c := range s.controllers {
		start("controller", c.Start)
	}
	return stop, nil
}

// slimWorkload keeps what is read: the controller, and what Kueue has decided. Labels, annotations
// and Pod templates may be large, and so may the nodes on which each Pod is to be.
func slimWorkload(object any) (any, error) {
	w, ok := object.(*kueue.Workload)
	if !ok {
		return object, nil
	}
	return &kueue.Workload{
		TypeMeta: w.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.Namespace, Name: w.Name, UID: w.UID, ResourceVersion: w.ResourceVersion, Generation: w.Generation,
			CreationTimestamp: w.CreationTimestamp, DeletionTimestamp: w.DeletionTimestamp, OwnerReferences: mirror.HeldOwner(w),
		},
		Status: kueue.WorkloadStatus{
			Conditions: slimConditions(w.Status.Conditions), Admission: slimAdmission(w.Status.Admission), AdmissionChecks: slimChecks(w.Status.AdmissionChecks),
		},
	}, nil
}

func slimConditions(all []metav1.Condition) []metav1.Condition {
	slim := slices.Clone(all)
	for i := range slim {
		slim[i].Message = ""
	}
	return slim
}

// slimChecks keeps as much of a message as Jobferry writes, and of what Pods get by a check what
// decides where they may run.
func slimChecks(all []kueue.AdmissionCheckState) []kueue.AdmissionCheckState {
	slim := slices.Clone(all)
	for i := range slim {
		slim[i].Message = text.Clean(slim[i].Message, text.MaxMessage)
		slim[i].PodSetUpdates = slices.Clone(slim[i].PodSetUpdates)
		for j := range slim[i].PodSetUpdates {
			slim[i].PodSetUpdates[j].Labels, slim[i].PodSetUpdates[j].Annotations = nil, nil
		}
	}
	return slim
}

func slimAdmission(a *kueue.Admission) *kueue.Admission {
	if a == nil {
		return nil
	}
	slim := &kueue.Admission{}
	for i := range a.PodSetAssignments {
		s := &a.PodSetAssignments[i]
		slim.PodSetAssignments = append(slim.PodSetAssignments, kueue.PodSetAssignment{Name: s.Name, Flavors: s.Flavors, Count: s.Count})
	}
	return slim
}

func indexOwner(object client.Object) []string {
	if w, ok := object.(*kueue.Workload); ok {
		if owner, is := ownerOf(w); is {
			return []string{string(owner.UID)}
		}
	}
	return nil
}

// admission is what Kueue decides about a Job by its Workload, which may be nil.
func (s *session) admission(ctx context.Context, job *batchv1.Job, w *kueue.Workload) dispatch.Admission {
	if w == nil {
		return dispatch.Admission{}
	}
	admission := admissionOf(job, w, s.checksOf(ctx, w), func(name string) *kueue.ResourceFlavor {
		flavor := &kueue.ResourceFlavor{}
		if !s.get(ctx, name, flavor) {
			return nil
		}
		return flavor
	})
	admission.Queued = true
	return admission
}
