package job

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/preference"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/carry"
	"github.com/jobferry/jobferry/pkg/manager/carry/copier"
	"github.com/jobferry/jobferry/pkg/manager/clusters"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/manager/line"
	"github.com/jobferry/jobferry/pkg/manager/usage"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
	"github.com/jobferry/jobferry/pkg/placement"
)

// gatherer reads all that is known of a Job, from caches and memory. What it is made of has no
// method that writes.
type gatherer struct {
	cache   client.Reader // of the hub
	workers interface {
		view(name string) (workerView, bool)
		viewHolders(key types.NamespacedName) []workerView
		Loss(worker string) clusters.Loss
	}
	namespaces *hubNamespaces
	admission  func(context.Context, *batchv1.Job) dispatch.Admission
	carried    func(at copier.Place, mirror types.UID) (copied copier.Copied, current bool)
	inFlight   func() int
	origin     v1alpha1.Origin
	hubKeys    mirror.HubKeys
	timing     dispatch.Timing
	line       *line.Line
}

// gather makes the snapshot of the Job of an allowance. If it reads the hub Job past the cache,
// k.spec has what that says.
func (g *gatherer) gather(ctx context.Context, a *allowance, k *known, now time.Time) (*dispatch.Snapshot, error) {
	key := a.key
	s := &dispatch.Snapshot{Now: now, Origin: g.origin, HubKeys: g.hubKeys, Key: key, Timing: g.timing, WritesInFlight: g.inFlight(), Gone: k.gone}
	k.seen = map[string]*batchv1.Job{}
	cached, err := g.cachedJob(ctx, key)
	if err != nil {
		return s, err
	}
	s.Job = k.lastWrite.latest(cached, now)
	k.isShown = s.Job != k.lastWrite.job
	if err := a.complete(ctx, s); err != nil {
		return s, err
	}
	var assigned, from string
	if s.Job != nil {
		s.Deletion, s.LastStatusWrite, s.UnshownSince = k.deletion, k.statusWritten, k.unshownSince
		s.PassedOver, s.Admission = k.passedOver, g.admission(ctx, s.Job)
		s.NotDispatched = g.namespaces.closed(ctx, key.Namespace)
		if err := g.readWhole(ctx, a, s, k); err != nil {
			return s, err
		}
		s.Accounted = usage.Read(s.Job)
		assigned, from = hubstate.Get(s.Job, hubstate.Cluster), hubstate.Get(s.Job, hubstate.MovedFrom)
	}
	switch {
	case s.Job == nil:
	case assigned != "":
		s.Assigned = g.assigned(s, assigned, *k)
		s.Return = g.returning(s, k)
	case shards.IsPlaced(s.Job):
		s.Divided = g.divided(s, *k)
	}
	s.Others = g.others(ctx, s, from, *k)
	if err := g.findCopied(ctx, s); err != nil {
		return s, err
	}
	s.Used.Observations = g.used(s)
	if w := s.Reflected(); w != nil && w.Mirror != nil && s.Job != nil {
		rejected := k.mirrors[w.Name].rejected
		w.StatusRejected = rejected != "" && rejected == states(s.Job, w.Mirror)
	}
	return s, nil
}

// readWhole reads the hub Job past the cache, if a decision may need that, and sets what is known
// of its recent fields.
func (g *gatherer) readWhole(ctx context.Context, a *allowance, s *dispatch.Snapshot, k *known) error {
	if err := a.refresh(ctx, s, &k.spec, !k.spec.of(s.Job) && g.isEdited(s, *k)); err != nil {
		return err
	}
	if k.spec.of(s.Job) {
		s.Recent = &k.spec.recent
	}
	return nil
}

// isEdited reports whether the spec of an unfinished hub Job has changed since its mirrors were
// written: then its recent fields may have, too, which the cache doesn't show.
func (g *gatherer) isEdited(s *dispatch.Snapshot, k known) bool {
	if !mirror.Managed(s.Job) || mirror.Finished(s.Job) || s.Job.DeletionTimestamp != nil {
		return false
	}
	for _, worker := range shards.WorkersOf(s.Job) {
		v, ok := g.workers.view(worker)
		if !ok {
			continue
		}
		m := k.mirrorIn(v, s)
		if m == nil || mirror.Owns(g.origin, s.Job.UID, m) != mirror.Ours || mirror.Finished(m) {
			continue
		}
		if generation, known := mirror.WrittenFor(m); !known || generation != 0 && generation != s.Job.Generation {
			return true
		}
	}
	return false
}

// cachedJob reads a hub Job from the cache; nil: there is none. It must not be modified.
func (g *gatherer) cachedJob(ctx context.Context, key types.NamespacedName) (*batchv1.Job, error) {
	var job batchv1.Job
	switch err := g.cache.Get(ctx, key, &job, client.UnsafeDisableDeepCopy); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the hub's cache: %w", err)
	default:
		return &job, nil
	}
}

// worker reads what every decision needs of a worker.
func (g *gatherer) worker(v workerView, s *dispatch.Snapshot, k known) dispatch.Worker {
	view := v.View()
	m := k.mirrors[v.Name()]
	w := dispatch.Worker{
		Name:           v.Name(),
		Registered:     true,
		Synced:         v.Synced(),
		Connecting:     view.Awaited(),
		Trouble:        view.Trouble(),
		JobController:  view.Spec.JobController,
		Minor:          view.Minor(),
		TookOver:       view.Writer.TookOver,
		HeldElsewhere:  view.IsHeldElsewhere(),
		ControllerSeen: v.ControllerSeen(),
		Cleanups:       m.cleanups.UnlessExpired(s.Now),
		ReleaseSince:   m.release.since(s.Now),
		Refusal:        m.refusal,
		Sought:         m.isSought,
		Confirmed:      m.isConfirmed,
	}
	found := k.mirrorIn(v, s)
	if s.SetMirror(&w, found); found == nil && w.Synced && !view.Removing {
		w.Orphan = s.Gone.MirrorIn(w.Name, s.Key)
	}
	if view.Removing {
		w.Removal = view.Spec.RemovalPolicy
	}
	if !w.Synced {
		loss := g.workers.Loss(w.Name)
		w.Loss = dispatch.Loss{
			Lost: loss.State == clusters.Lost, Isolated: loss.State == clusters.Isolated,
			Since: loss.Since, At: loss.At,
		}
	}
	return w
}

// mirrorIn is a worker's Job of this name and origin, as it was when it was first seen; nil: there
// is none, or it's being taken back.
func (k *known) mirrorIn(v workerView, s *dispatch.Snapshot) *batchv1.Job {
	if k.seen[v.Name()] == nil {
		m := k.mirrors[v.Name()]
		if found := heldBy(v, s.Key, m.write, s.Now); found != nil && !m.isTakingBack(found.UID) {
			k.seen[v.Name()] = mirror.InHubTime(found, v.View().ClockAhead)
		}
	}
	return k.seen[v.Name()]
}

// heldBy returns a worker's Job of this name and origin; nil: there is none.
func heldBy(v workerView, key types.NamespacedName, write ownWrite, now time.Time) *batchv1.Job {
	cached, _ := v.Mirror(key)
	return write.latest(cached, now)
}

// assigned reads the worker that the Job is placed on.
func (g *gatherer) assigned(s *dispatch.Snapshot, name string, k known) *dispatch.Worker {
	v, ok := g.workers.view(name)
	if !ok {
		return &dispatch.Worker{Name: name, Fits: true}
	}
	w, m, view := g.worker(v, s, k), k.mirrors[name], v.View()
	lookBack(s, &w, m, mirror.InHubTime(m.last, view.ClockAhead))
	w.Unwanted = unwantedAt(s.Job, view, name)
	w.StartTimeout = line.StartTimeoutOf(&view.Spec, g.timing.StuckTimeout)
	w.Stockout = g.line.IsStockedOut(s.Job, name)
	w.Patches, w.Creations = m.patches.of(s, s.Now), m.creations.of(s, s.Now)
	w.Unmet, w.Agreed = m.unmet, m.agreed
	w.Fits = !s.MayResumeIn(&w) || line.Fits(s.Admission.AsResumed(s.Job), v)
	if w.Mirror != nil && s.Part == nil {
		w.Elsewhere = mirror.EndedBefore(s.Job, w.Mirror)
	}
	w.Pods, w.Carry = g.pods(s, &w, m, v), g.carry(s, &w, view)
	w.Stockout = w.Stockout || w.Pods.Unschedulable > 0 && addsNoNodes(v, s.Job)
	return &w
}

// lookBack reads what is remembered of the mirror in a worker, which its watch may not show any
// more. last is its last state in the hub's time; nil: that isn't known.
func lookBack(s *dispatch.Snapshot, w *dispatch.Worker, m mirrorMemory, last *batchv1.Job) {
	w.Missed, w.Replaced, w.Own = m.isMissed || m.takenBack != "", m.isReplaced, w.Mirror != nil && w.Mirror.UID == m.created
	w.Unseen = w.Mirror == nil && m.created == "" && !m.isReplaced && !m.isConfirmed
	if w.Synced && w.Mirror == nil && w.Orphan == nil && last != nil && m.rejected != states(s.Job, last) {
		switch {
		case s.IsEndedBy(last):
			w.Mirror = last
		case m.takenBack != "":
			w.TakenBack = last
		}
	}
}

// addsNoNodes reports whether a worker's autoscaler says that it adds no nodes for a Job's Pods for
// now.
func addsNoNodes(v workerView, job *batchv1.Job) bool {
	room := v.Room(types.NamespacedName{})
	return room != nil && room.IsPaused(placement.ShapeOf(&job.Spec.Template))
}

// carry reads what is known of the objects that are carried along with the Job. The hub alone says
// which: the worker can write all that its mirror says.
func (g *gatherer) carry(s *dispatch.Snapshot, w *dispatch.Worker, view clusters.View) dispatch.Carry {
	if mirror.Finished(s.Job) {
		return dispatch.Carry{}
	}
	kinds := carry.Kinds(&s.Job.Spec.Template, view.Spec.Carry)
	if len(kinds) == 0 || w.Mirror == nil {
		return dispatch.Carry{Kinds: kinds}
	}
	copied, current := g.carried(copier.Place{NamespacedName: s.Key, Worker: w.Name}, w.Mirror.UID)
	// What blocks may be gone from the worker, which isn't watched.
	stale := len(copied.Blocked) > 0 && s.Now.Sub(copied.At) >= g.timing.Recheck
	return dispatch.Carry{
		Kinds: kinds, Current: current && !stale && slices.Equal(copied.Kinds, kinds),
		After: max(0, copied.Due.Sub(s.Now)), Blocked: copied.Blocked, Notes: copied.Notes,
	}
}

// divided reads the shards of the Job, and the worker of each.
func (g *gatherer) divided(s *dispatch.Snapshot, k known) *dispatch.Divided {
	d := &dispatch.Divided{}
	if d.Placement, d.Err = shards.Read(s.Job); d.Err != nil {
		return d
	}
	var mirrors []*batchv1.Job
	for _, shard := range d.Placement.Shards {
		part := g.part(s, shard, k)
		d.Shards = append(d.Shards, dispatch.Shard{Shard: shard, Part: part})
		if m := part.Assigned.Mirror; m != nil {
			mirrors = append(mirrors, m)
		}
	}
	d.StatusRejected = k.rejected != "" && k.rejected == states(s.Job, mirrors...)
	return d
}

// part makes the snapshot of one shard.
func (g *gatherer) part(s *dispatch.Snapshot, shard shards.Shard, k known) *dispatch.Snapshot {
	part := *s
	part.Part = &dispatch.Part{Shard: shard, HubJob: s.Job}
	follows := false
	if v, ok := g.workers.view(shard.Worker); ok {
		follows = shards.Follows(s.Job, v.View().Spec.JobController)
		if m := k.mirrorIn(v, s); m != nil {
			follows = shards.IsFollowing(m)
		}
	}
	part.Job = shards.Part(s.Job, shard, follows)
	part.Assigned = g.assigned(&part, shard.Worker, k)
	if !follows {
		part.Assigned.Elsewhere.Succeeded = ptr.Deref(s.Job.Spec.Completions, 0) - int32(shard.Len())
	}
	return &part
}

// others reads the other workers that hold a mirror of this name, and the one that the Job was
// moved from, in order of names.
func (g *gatherer) others(ctx context.Context, s *dispatch.Snapshot, from string, k known) []dispatch.Worker {
	var others []dispatch.Worker
	for _, v := range g.mayHold(s, from, k) {
		if s.Job != nil && shards.IsOn(s.Job, v.Name()) {
			continue
		}
		w := g.worker(v, s, k)
		if w.Mirror != nil && s.Job != nil {
			w.Unwanted = cmp.Or(unwantedAt(s.Job, v.View(), w.Name), g.excludes(ctx, v.View(), s.Key.Namespace))
		}
		if m := k.mirrors[w.Name]; w.Name == from && w.Synced && w.Mirror == nil && w.Orphan == nil && m.takenBack != "" {
			w.TakenBack = mirror.InHubTime(m.last, v.View().ClockAhead)
		}
		if w.Mirror != nil || w.Orphan != nil || w.Sought || w.Name == from {
			others = append(others, w)
		}
	}
	return others
}

// mayHold are the workers that hold a mirror of this name by what their watches show, or by what
// was written, and the one that the Job was moved from, in order of names.
func (g *gatherer) mayHold(s *dispatch.Snapshot, from string, k known) []workerView {
	views := g.workers.viewHolders(s.Key)
	add := func(name string) {
		i, found := slices.BinarySearchFunc(views, name, func(v workerView, n string) int { return cmp.Compare(v.Name(), n) })
		if v, ok := g.workers.view(name); ok && !found {
			views = slices.Insert(views, i, v)
		}
	}
	add(from)
	for _, id := range s.Gone.Mirrors {
		add(id.Worker)
	}
	for name, m := range k.mirrors { // written, and not in the cache yet, or without marks
		if m.write.job != nil || m.isSought {
			add(name)
		}
	}
	return views
}

// findCopied finds the hub Jobs of other names that orphans stand for.
func (g *gatherer) findCopied(ctx context.Context, s *dispatch.Snapshot) error {
	for _, w := range s.Workers() {
		name := mirror.NameOnHub(w.Orphan)
		if name == "" || name == s.Key.Name {
			continue
		}
		copied, err := g.cachedJob(ctx, types.NamespacedName{Namespace: s.Key.Namespace, Name: name})
		if err != nil {
			return err
		}
		if copied != nil && copied.UID == mirror.HubUID(w.Orphan) {
			w.CopyOf = copied
		}
	}
	return nil
}

// excludes says why a worker takes no Jobs of a namespace; empty: it does.
func (g *gatherer) excludes(ctx context.Context, view clusters.View, namespace string) string {
	if selector, _ := view.Namespaces(); selector != nil && !selector.Matches(g.namespaces.labels(ctx, namespace)) {
		return "its namespaceSelector doesn't match the namespace"
	}
	return ""
}

// unwantedAt says why a Job is to leave the worker that it's placed on; empty: it isn't. The
// cluster selector counts when it has been changed since the Job was placed: other labels of a
// worker move no Jobs, as other labels of a node move no Pods.
func unwantedAt(job *batchv1.Job, view clusters.View, worker string) string {
	if mirror.Finished(job) {
		return ""
	}
	if view.Spec.Drain {
		return "worker " + worker + " is draining"
	}
	selector := job.Annotations[v1alpha1.AnnotationClusterSelector]
	if selector == hubstate.Get(job, hubstate.PlacedFor) {
		return ""
	}
	wanted, err := preference.ParseSelector(job.Annotations)
	if err != nil || wanted == nil || wanted.Matches(labels.Set(view.Labels)) {
		return "" // an invalid selector moves nothing
	}
	return fmt.Sprintf("the Job's cluster selector is %q now, which worker %s doesn't match", selector, worker)
}
