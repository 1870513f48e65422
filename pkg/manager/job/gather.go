package job

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

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/clusters"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/manager/placement"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// gather reads all that is known of a Job, from caches and memory only.
func (r *Reconciler) gather(ctx context.Context, key types.NamespacedName, now time.Time) *dispatch.Snapshot {
	s := &dispatch.Snapshot{Now: now, Origin: r.origin, Key: key, Timing: r.options.Timing, HubBusy: r.pace.Excess(now)}
	s.Job = r.hub.Latest(key, func() *batchv1.Job { return r.cachedJob(ctx, key) }, now)
	home, from := "", ""
	if s.Job != nil {
		known := r.memory.Of(s.Job.UID)
		s.Orphan, s.LastStatusWrite = known.orphan, known.statusWritten
		s.Patches, s.Mirrors = known.patches.of(s.Job, now), known.mirrors.of(s.Job, now)
		s.Unmet = known.unmetSince(now.Add(-r.options.PassOver))
		s.MirrorChanged = r.lag.Since(key)
		s.PassedOver = r.passedOver.For(s.Job.UID, now)
		s.Admission = r.queues.Admission(ctx, s.Job)
		home, from = s.Job.Annotations[v1alpha1.AnnotationCluster], s.Job.Annotations[v1alpha1.AnnotationMovedFrom]
	}
	if home != "" {
		s.Home = r.seat(home, key, now)
		if w, ok := r.workers.Get(home); ok {
			s.Home.Unwanted = unwantedAt(s.Job, w.View(), home)
		}
	}
	s.Elsewhere = r.elsewhere(key, home, from, now)
	r.gatherPods(ctx, s)
	r.gatherCarry(s)
	return s
}

// cachedJob reads a hub Job from the cache; nil: there is none. It must not be modified.
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

// Unfinished implements clusters.Placements. A worker is let go when it's zero, so then the cache
// itself is asked: after a start the index may not be complete.
func (r *Reconciler) Unfinished(worker string) int {
	n := r.placements.Unfinished(worker)
	if w, ok := r.workers.Get(worker); n > 0 || !ok || !w.View().Removing {
		return n
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	var jobs batchv1.JobList
	if err := r.cache.List(ctx, &jobs, client.UnsafeDisableDeepCopy); err != nil {
		return 1 // not known: it's asked again
	}
	for i := range jobs.Items {
		if jobs.Items[i].Annotations[v1alpha1.AnnotationCluster] == worker && !mirror.Finished(&jobs.Items[i]) {
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
		Connecting:    view.State == clusters.Connecting,
		Trouble:       view.Message,
		Loss:          r.lossOf(w),
		JobController: view.Spec.JobController,
		Minor:         int(version.Minor),
		LastStart:     w.LastStart(),
		Mirror:        r.mirrorIn(w, key, now),
	}
	if view.Removing {
		seat.Removal = view.Spec.RemovalPolicy
	}
	return seat
}

// mirrorIn returns a worker's Job of this name and origin. One that doesn't say whose mirror it is
// isn't ours, whatever its label says.
func (r *Reconciler) mirrorIn(w *clusters.Worker, key types.NamespacedName, now time.Time) *batchv1.Job {
	latest := r.mirrors.In(w.Name()).Latest(key, func() *batchv1.Job {
		cached, _ := w.Mirror(key)
		return cached
	}, now)
	if latest == nil || mirror.HubUID(latest) == "" {
		return nil
	}
	return latest
}

// elsewhere returns the other workers that hold a mirror of this name, and the one that the Job was
// moved from.
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

// gatherPods adds what is known of the mirror's Pods.
func (r *Reconciler) gatherPods(ctx context.Context, s *dispatch.Snapshot) {
	s.Fits = r.fitsAtHome(ctx, s)
	if shown := s.ReflectedSeat(); shown != nil && shown.Mirror != nil {
		rejected := r.memory.Of(s.Job.UID).rejected
		s.StatusRejected = rejected != "" && rejected == states(s.Job, shown.Mirror)
	}
	if s.Home == nil || s.Home.Mirror == nil {
		return
	}
	m, known := s.Home.Mirror, r.memory.Of(s.Job.UID)
	s.Pods.Asked = known.asked == m.UID && s.Now.Sub(known.askedAt) < s.Timing.StuckTimeout
	s.Pods.Refusal = known.refusal
	worker, ok := r.workers.Get(s.Home.Worker)
	if ok && worker.View().Capacity.Known {
		readLedger(s, worker)
	}
	s.Pods.WaitingSince = r.memory.Waiting(s.Job.UID, m.UID, dispatch.IsWaiting(s), s.Now)
}

// readLedger adds what the home's ledger knows.
func readLedger(s *dispatch.Snapshot, worker *clusters.Worker) {
	report := worker.Ledger().Unschedulable(s.Home.Mirror.UID)
	s.Pods.Known, s.Pods.EverRan = true, report.EverRan
	s.Pods.Unschedulable, s.Pods.Message = report.Unschedulable, report.Message
	s.Pods.Hindered, s.Pods.Hindrance = report.Hindered, report.Hindrance
}

// fitsAtHome says whether a Job that is to be resumed has room at home; it's asked of no other.
func (r *Reconciler) fitsAtHome(ctx context.Context, s *dispatch.Snapshot) bool {
	if s.Home == nil || s.Job == nil || !mayResume(s) {
		return true
	}
	worker, ok := r.workers.Get(s.Home.Worker)
	if !ok || !worker.View().Capacity.Known {
		return true
	}
	return r.placer.Fits(ctx, s.Admission.AsResumed(s.Job), worker)
}

// mayResume: the Job is suspended in its home, and runs again on the hub, or will as soon as its
// queue knows that it has a place.
func mayResume(s *dispatch.Snapshot) bool {
	if mirror.Suspended(s.Job) {
		return s.Admission.QuotaReserved && (s.Home.Mirror == nil || mirror.Suspended(s.Home.Mirror))
	}
	return s.Home.Mirror != nil && mirror.Suspended(s.Home.Mirror)
}
