package kueue

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

const (
	// pollInterval is how often the manager asks the hub for Kueue's API while the CRDs aren't
	// enough: the API is served a little later than its CRDs exist, and may be of another version.
	pollInterval = 10 * time.Second
	// syncTimeout bounds the start of a session.
	syncTimeout = 10 * time.Second
)

// retryBackoff replaces pollInterval after failures.
var retryBackoff = wait.Backoff{Duration: 2 * time.Second, Factor: 2, Steps: 6, Cap: time.Minute}

// resources are those of Kueue's API that a session needs.
var resources = []string{"admissionchecks", "workloads", "multikueueconfigs", "multikueueclusters", "resourceflavors"}

// lifecycle runs a session while the hub serves Kueue's API.
type lifecycle struct {
	queues *Queues
	log    logr.Logger
	crds   *crdWatch
	api    servedResources
	// begin starts a session, and returns when its caches are filled.
	begin func(context.Context) (s *session, stop func(), err error)
	stop  func() // of the session; nil: none runs
}

// servedResources is what lifecycle needs of a discovery client.
type servedResources interface {
	ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error)
}

func newLifecycle(q *Queues, mgr ctrl.Manager, namespace string) (*lifecycle, error) {
	api, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, err
	}
	client, err := metadata.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, err
	}
	logger := mgr.GetLogger().WithName("kueue")
	crds, err := newCRDWatch(client, logger)
	if err != nil {
		return nil, err
	}
	return &lifecycle{queues: q, log: logger, crds: crds, api: api, begin: func(ctx context.Context) (*session, func(), error) {
		s, err := newSession(ctx, q, mgr, namespace)
		if err != nil {
			return nil, nil, err
		}
		stop, err := s.run(ctx)
		return s, stop, err
	}}, nil
}

// Start implements manager.Runnable.
func (l *lifecycle) Start(ctx context.Context) error {
	ctx = log.IntoContext(ctx, l.log)
	var watch sync.WaitGroup
	watch.Go(func() { l.crds.informer.RunWithContext(ctx) })
	defer watch.Wait()
	defer l.end()
	for retry := retryBackoff; ; {
		var again <-chan time.Time
		if err := l.update(ctx); err == nil {
			again, retry = l.poll(), retryBackoff
		} else if ctx.Err() == nil {
			pause := retry.Step()
			l.report(err, pause)
			again = time.After(pause)
		}
		select {
		case <-again:
		case <-l.crds.changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// poll returns when to look again without an event: never, if a session runs just when there are
// the CRDs that it needs.
func (l *lifecycle) poll() <-chan time.Time {
	if complete, known := l.crds.complete(); known && complete == (l.stop != nil) {
		return nil
	}
	return time.After(pollInterval)
}

// update begins or ends the session, depending on whether the hub serves Kueue's API.
func (l *lifecycle) update(ctx context.Context) error {
	served, err := isServed(l.api)
	if err != nil {
		return err
	}
	switch {
	case served && l.stop == nil:
		l.queues.known.Store(false)
		s, stop, err := l.begin(ctx)
		if err != nil {
			return err
		}
		l.stop = stop
		l.queues.session.Store(s)
		l.log.Info("The hub serves Kueue's API: AdmissionChecks are reconciled", "controllerName", v1alpha1.ManagedByDispatcher)
	case !served && l.stop != nil:
		l.end()
		l.log.Info("The hub doesn't serve Kueue's API any more")
	case l.queues.known.Load():
		return nil
	}
	l.queues.known.Store(true)
	l.queues.failed.Store(false)
	l.queues.jobs.EnqueueUnplaced()
	return nil
}

// report logs a failure with the way out, and lets the Jobs be placed that name no queue.
func (l *lifecycle) report(err error, pause time.Duration) {
	message := "Kueue's objects can't be read: Jobs without a queue are dispatched, Jobs that name one wait"
	if apierrors.IsForbidden(err) {
		message = "The manager lacks a permission that the integration with Kueue needs (the ClusterRole jobferry-kueue, which the chart makes " +
			"with kueue.enabled=true; discovery is allowed by the ClusterRole system:discovery): Jobs without a queue are dispatched, Jobs that name one wait. " +
			"Grant it, or set --kueue-disabled"
	}
	l.log.Error(err, message, "retryIn", pause.String())
	if !l.queues.failed.Swap(true) {
		l.queues.jobs.EnqueueUnplaced()
	}
}

func (l *lifecycle) end() {
	if l.stop == nil {
		return
	}
	l.queues.session.Store(nil)
	l.stop()
	l.stop = nil
}

// isServed reports whether the hub serves all resources that a session needs.
func isServed(api servedResources) (bool, error) {
	list, err := api.ServerResourcesForGroupVersion(kueue.SchemeGroupVersion.String())
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("discover the resources of %s: %w", kueue.SchemeGroupVersion, err)
	}
	served := func(name string) bool {
		return slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == name })
	}
	return !slices.ContainsFunc(resources, func(name string) bool { return !served(name) }), nil
}
