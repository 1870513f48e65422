package manager

import (
	"cmp"
	"context"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/jobferry/jobferry/pkg/manager/clusters"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/manager/placement"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// gather reads all that is known of a Job, from caches and memory only.
func (r *Reconciler) gather(ctx context.Context, key types.NamespacedName, now time.Time) *dispatch.Snapshot {
	s := &dispatch.Snapshot{Now: now, Origin: r.origin, Key: key, Timing: r.options.Timing}
	s.Job = r.hub.Latest(key, r.cachedJob(ctx, key), now)
	home, from := "", ""
	if s.Job != nil {
		known := r.memory.Of(s.Job.UID)
		s.Orphan, s.LastStatusWrite, s.Unmet = known.orphan, known.statusWritten, known.unmetFor(s.Job)
		s.MirrorChanged = r.lag.Since(key)
		s.PassedOver = r.passedOver.For(s.Job.UID, now)
		home, from = s.Job.Annotations[mirror.AnnotationCluster], s.Job.Annotations[mirror.AnnotationMovedFrom]
	}
	if home != "" {
		s.Home = r.seat(home, key, now)
	}
	s.Elsewhere = r.elsewhere(key, home, from, now)
	r.gatherPods(ctx, s)
	r.gatherCarry(s)
	return s
}

// cachedJob reads a hub Job from the cache; nil: there is none. It must not be
// modified.
func (r *Reconciler) cachedJob(ctx context.Context, key types.NamespacedName) *batchv1.Job {
	var job batchv1.Job
	if err := r.cache.Get(ctx, key, &job, client.UnsafeDisableDeepCopy); err != nil {
		if !apierrors.IsNotFound(err) {
			log.FromContext(ctx).Error(err, "Can't read the hub's cache")
		}
		return nil
	}
	return &job
}

// Unfinished implements clusters.Placements. A worker is let go when it's zero, so
// then the cache itself is asked: after a start the index may not be complete.
func (r *Reconciler) Unfinished(worker string) int {
	if n := r.placements.Unfinished(worker); n > 0 {
		return n
	}
	var jobs batchv1.JobList
	if err := r.cache.List(context.Background(), &jobs, client.UnsafeDisableDeepCopy); err != nil {
		return 1 // not known: it's asked again
	}
	n := 0
	for i := range jobs.Items {
		if jobs.Items[i].Annotations[mirror.AnnotationCluster] == worker && !mirror.Finished(&jobs.Items[i]) {
			n++
		}
	}
	return n
}

func (r *Reconciler) seat(worker string, key types.NamespacedName, now time.Time) *dispatch.Seat {
	w, ok := r.workers.Get(worker)
	if !ok {
		return &dispatch.Seat{Worker: worker}
	}
	return r.seatOf(w, key, now)
}

func (r *Reconciler) seatOf(w *clusters.Worker, key types.NamespacedName, now time.Time) *dispatch.Seat {
	view := w.View()
	version, _ := placement.ParseVersion(view.Version) // unknown: taken for old
	seat := &dispatch.Seat{
		Worker:        w.Name(),
		Registered:    true,
		Synced:        w.Synced(),
		Trouble:       view.Message,
		JobController: view.Spec.JobController,
		Minor:         int(version.Minor),
		Mirror:        r.mirrorIn(w, key, now),
	}
	if view.Removing {
		seat.Removal = view.Spec.RemovalPolicy
	}
	return seat
}

func (r *Reconciler) mirrorIn(w *clusters.Worker, key types.NamespacedName, now time.Time) *batchv1.Job {
	cached, _ := w.Mirror(key)
	return r.mirrors.In(w.Name()).Latest(key, cached, now)
}

// elsewhere returns the other workers that hold a mirror of this name, and the
// one that the Job was moved from.
func (r *Reconciler) elsewhere(key types.NamespacedName, home, from string, now time.Time) []dispatch.Seat {
	var seats []dispatch.Seat
	for _, w := range r.workers.List() {
		if w.Name() == home || (w.Name() != from && r.mirrorIn(w, key, now) == nil) {
			continue
		}
		seats = append(seats, *r.seatOf(w, key, now))
	}
	slices.SortFunc(seats, func(a, b dispatch.Seat) int { return cmp.Compare(a.Worker, b.Worker) })
	return seats
}

// gatherPods adds what the home's ledger knows.
func (r *Reconciler) gatherPods(ctx context.Context, s *dispatch.Snapshot) {
	s.Fits = true
	if s.Home == nil || s.Home.Mirror == nil {
		return
	}
	if s.Job != nil {
		known := r.memory.Of(s.Job.UID)
		s.Pods.Asked, s.Pods.Refusal = known.asked == s.Home.Mirror.UID, known.refusal
	}
	worker, ok := r.workers.Get(s.Home.Worker)
	if !ok || !worker.View().Room.Known {
		return
	}
	report := worker.Ledger().Unschedulable(s.Home.Mirror.UID)
	s.Pods.Known, s.Pods.EverRan = true, report.EverRan
	s.Pods.Unschedulable, s.Pods.Since, s.Pods.Message = report.Unschedulable, report.Since, report.Message
	if isSuspended(s.Home.Mirror) && !isSuspended(s.Job) {
		s.Fits = r.placer.Fits(ctx, s.Job, worker)
	}
}
