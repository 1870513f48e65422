package mirror

import (
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror/intervals"
)

// Seed returns the status that a moved Job's mirror, created suspended, starts from, so that the
// worker continues from the progress the hub knows of. It's false if there's nothing to carry over:
// no progress, a fresh start, or a work queue, whose progress only its Pods know. A condition that
// leads to the end is carried over in any case: a Job that's about to fail doesn't get another
// chance by losing its worker.
func Seed(hub *batchv1.Job, freshStart bool) (batchv1.JobStatus, bool) {
	var seed batchv1.JobStatus
	for _, e := range []ending{success, failure} {
		if c := TrueCondition(&hub.Status, e.interim); c != nil {
			seed.Conditions = append(seed.Conditions, *c)
		}
	}
	if freshStart || workQueue(hub) || !progressed(&hub.Status) {
		return seed, len(seed.Conditions) > 0
	}
	seed.Succeeded, seed.Failed = hub.Status.Succeeded, hub.Status.Failed
	if !indexed(hub) {
		return seed, true
	}
	// The hub Job may have been scaled down since its status was written.
	n, has := completions(hub), readIndexes(&hub.Status, intervals.NoLimit)
	completed := has.completed.Below(n)
	seed.CompletedIndexes, seed.Succeeded = completed.String(), int32(completed.Len())
	if hub.Status.FailedIndexes != nil {
		seed.FailedIndexes = ptr.To(has.failed.Below(n).String())
	}
	return seed, true
}

// NeedsSeed reports whether a mirror of the hub Job that's created now must be seeded before it may
// run.
func NeedsSeed(hub *batchv1.Job) bool {
	_, needed := Seed(hub, StartsFresh(hub))
	return needed
}

// SeedDue returns the seed that a mirror needs now: the mirror is suspended, has less progress than
// the hub, and either hasn't run or has stopped. Until the seed is written, Drift keeps the mirror
// suspended, and Reflect waits for one that hasn't run. It's not due while the mirror's completions
// differ from the hub's, because the worker would reject indexes beyond its own. Nor is it before
// the worker's Job controller has seen a mirror with spec.scheduling: the built-in makes the
// PodGroup only for a Job without progress.
func SeedDue(hub, mirror *batchv1.Job) (batchv1.JobStatus, bool) {
	seed, awaits := awaitedSeed(hub, mirror)
	if !awaits && Stopped(mirror) && !Finished(mirror) {
		seed, awaits = forgotten(hub, mirror)
	}
	seen := mirror.Spec.Scheduling == nil || isTrue(&mirror.Status, batchv1.JobSuspended)
	return seed, awaits && seen && ptr.Equal(hub.Spec.Completions, mirror.Spec.Completions)
}

func awaitedSeed(hub, mirror *batchv1.Job) (batchv1.JobStatus, bool) {
	if !Suspended(mirror) || mirror.Status.StartTime != nil || progressed(&mirror.Status) {
		return batchv1.JobStatus{}, false
	}
	seed, ok := Seed(hub, FreshStart(mirror))
	return seed, ok && !seeded(&mirror.Status, &seed)
}

func awaitsSeed(hub, mirror *batchv1.Job) bool {
	_, awaits := awaitedSeed(hub, mirror)
	return awaits
}

// Forgot reports whether a mirror has lost progress that the hub shows: its worker's etcd, or the
// mirror itself, was put back to an earlier state. A fixed shard that doesn't know what the others
// have would run that, too; the mirror of any other names what it may run.
func Forgot(hub, mirror *batchv1.Job) bool {
	_, forgot := forgotten(hub, mirror)
	return forgot && !Finished(mirror)
}

// EndedForgetful reports whether a mirror has ended without progress that the hub shows, which
// doesn't show how the Job ends. The mirror's end is not that of the Job.
func EndedForgetful(hub, mirror *batchv1.Job) bool {
	_, forgot := forgotten(hub, mirror)
	return forgot && Finished(mirror) && OutcomeOf(hub) == Undecided
}

// forgotten returns the status of a mirror that has lost progress, with what the hub knows of it.
func forgotten(hub, mirror *batchv1.Job) (batchv1.JobStatus, bool) {
	_, part := mirror.Annotations[v1alpha1.AnnotationIndexes]
	follows := part && (!indexed(hub) || deref(mirror.Spec.ManagedBy) == v1alpha1.ManagedByWorker)
	begins := blank(&mirror.Status) && (!part || Suspended(mirror))
	if follows || begins || Finished(hub) {
		return batchv1.JobStatus{}, false
	}
	known, ok := Seed(hub, FreshStart(mirror))
	has := mirror.Status
	if listed := has.UncountedTerminatedPods; listed != nil {
		has.Failed += distinct(listed.Failed)
		if !indexed(hub) {
			has.Succeeded += distinct(listed.Succeeded)
		}
	}
	if !ok || seeded(&has, &known) {
		return batchv1.JobStatus{}, false
	}
	hubs := known
	known.Succeeded, known.Failed = max(known.Succeeded, has.Succeeded), max(known.Failed, has.Failed)
	if indexed(hub) {
		of, its := readIndexes(&known, intervals.NoLimit), readIndexes(&has, intervals.NoLimit)
		completed := of.completed.Union(its.completed)
		known.CompletedIndexes, known.Succeeded = completed.String(), int32(completed.Len())
		if known.FailedIndexes != nil || has.FailedIndexes != nil {
			known.FailedIndexes = ptr.To(of.failed.Union(its.failed).Minus(completed).String())
		}
	}
	// An index that had failed may have completed since: that can't be taken back.
	return known, seeded(&known, &hubs)
}

// seeded reports whether a mirror's status has the progress of the seed, or more.
func seeded(status, seed *batchv1.JobStatus) bool {
	for i := range seed.Conditions {
		if !isTrue(status, seed.Conditions[i].Type) {
			return false
		}
	}
	has, needs := readIndexes(status, intervals.NoLimit), readIndexes(seed, intervals.NoLimit)
	return status.Succeeded >= seed.Succeeded &&
		status.Failed >= seed.Failed &&
		needs.completed.SubsetOf(has.completed) &&
		needs.failed.SubsetOf(has.failed)
}

// SeedPatch is the merge patch for jobs/status that seeds a mirror. It keeps what the worker's
// controller has written meanwhile, such as Suspended=True.
func SeedPatch(mirror *batchv1.Job, seed *batchv1.JobStatus) []byte {
	next := mirror.Status.DeepCopy()
	next.Succeeded, next.Failed = seed.Succeeded, seed.Failed
	next.CompletedIndexes, next.FailedIndexes = seed.CompletedIndexes, seed.FailedIndexes
	for _, c := range seed.Conditions {
		if !isTrue(next, c.Type) {
			next.Conditions = append(next.Conditions, c)
		}
	}
	return StatusPatch(mirror, next, mirror.Finalizers)
}
