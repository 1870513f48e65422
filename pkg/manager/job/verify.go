package job

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/manager/usage"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
	"github.com/jobferry/jobferry/pkg/util/ownwrite"
	"github.com/jobferry/jobferry/pkg/util/text"
)

// answerExpires is how old the hub's answer may be that a new mirror rests on. It is shorter than
// any Lease of a leader that one would set: in a process that stood still for longer (a suspended
// machine, a starved node) the cache may be old, and another manager may lead.
const answerExpires = 5 * time.Second

// verifyWanted makes sure that the hub wants the Job to run on this worker. The answer to the write
// that placed the Job a moment ago says so, unless the cache shows an earlier state since; any
// other create takes a live read of the hub. So the plain way of a Job costs no extra request.
func (r *Reconciler) verifyWanted(ctx context.Context, t *turn, worker string) error {
	// The wall clock is compared: the monotonic clock stands still with the machine.
	k := t.record.read(t.Now)
	age := r.clock.Now().Round(0).Sub(k.answered.Round(0))
	if age >= 0 && age < answerExpires && !ownwrite.NewerVersion(k.answer, t.hubJob().ResourceVersion) {
		return t.checkWanted(t.hubJob(), worker)
	}
	job, err := t.liveJob(ctx)
	if err == nil {
		err = r.guard.Check(ctx)
	}
	if err != nil {
		return err
	}
	return t.checkWanted(job, worker)
}

// wholeWanted is verifyWanted for a new mirror: it returns the hub Job with its recent fields; nil:
// it has none, as the write that placed it, or an earlier read, has shown.
func (r *Reconciler) wholeWanted(ctx context.Context, t *turn, worker string) (*mirror.Whole, error) {
	if seen := t.record.read(t.Now).spec; seen.of(t.Job) && len(seen.recent) == 0 {
		return nil, r.verifyWanted(ctx, t, worker)
	}
	whole, err := t.liveWhole(ctx)
	if err == nil {
		err = r.guard.Check(ctx)
	}
	if err != nil {
		return nil, err
	}
	if whole == nil || whole.Job.Generation != t.Job.Generation {
		return nil, errStale
	}
	return whole, t.checkWanted(whole.Job, worker)
}

// hubJob is the Job as the hub has it, also in the turn of one of its shards.
func (t *turn) hubJob() *batchv1.Job {
	if t.Part != nil {
		return t.Part.HubJob
	}
	return t.Job
}

func (t *turn) checkWanted(job *batchv1.Job, worker string) error {
	if job == nil || job.DeletionTimestamp != nil || mirror.Finished(job) || !t.isPlacedAlike(job, worker) {
		return errStale
	}
	return nil
}

// isPlacedAlike reports whether the hub Job has the placement on a worker that the turn is about.
func (t *turn) isPlacedAlike(job *batchv1.Job, worker string) bool {
	if t.Part == nil {
		return hubstate.Get(job, hubstate.Cluster) == worker
	}
	live, err := shards.Read(job)
	shard, is := live.In(worker)
	return err == nil && is && shard.String() == t.Part.String() && shard.Stopping == t.Part.Stopping
}

// liveJob reads the hub Job past the cache; nil: it is gone, or another one has its name.
func (t *turn) liveJob(ctx context.Context) (*batchv1.Job, error) {
	if t.Job == nil {
		return nil, nil
	}
	job, err := t.allowance.read(ctx, t.Job.UID)
	if err != nil || job.UID != t.Job.UID {
		return nil, client.IgnoreNotFound(err)
	}
	return job, nil
}

// liveWhole is liveJob with all that the API server sends.
func (t *turn) liveWhole(ctx context.Context) (*mirror.Whole, error) {
	if t.Job == nil {
		return nil, nil
	}
	whole, err := t.allowance.readWhole(ctx, t.Job.UID)
	if err != nil || whole.Job.UID != t.Job.UID {
		return nil, client.IgnoreNotFound(err)
	}
	t.record.sawWhole(whole)
	return whole, nil
}

// isStale asks the hub itself whether the Job isn't placed on a worker.
func (r *Reconciler) isStale(ctx context.Context, t *turn, worker string) (bool, error) {
	job, err := t.liveJob(ctx)
	return job != nil && !shards.IsOn(job, worker), err
}

// isGone asks the hub itself whether it has no Job of this UID.
func (r *Reconciler) isGone(ctx context.Context, key types.NamespacedName, uid types.UID) (bool, error) {
	var job metav1.PartialObjectMetadata // a large one isn't decoded
	job.SetGroupVersionKind(batchv1.SchemeGroupVersion.WithKind("Job"))
	err := r.live.Get(ctx, key, &job)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	return err == nil && job.UID != uid, err
}

// deleteMirror deletes a mirror, and no other Job of its name.
func (r *Reconciler) deleteMirror(ctx context.Context, t *turn, w worker, a dispatch.DeleteMirror) (result, error) {
	if may, err := r.mayDelete(ctx, t, w, a); err != nil || !may {
		return void, err // the cache was behind: its next event enqueues the Job
	}
	if a.Suspend {
		answer, err := sendPatch(ctx, w, a.Mirror, mirror.SuspendPatch(a.Mirror))
		if err == nil {
			err = r.wroteMirror(t.record, w, answer)
		}
		if err != nil {
			return result{}, t.keeps(w, err)
		}
	}
	repeated := r.repeated(t, w, a) // before the deletion is all that is known of it
	if err := r.sendDeletion(ctx, t, w, a); client.IgnoreNotFound(err) != nil {
		return result{}, t.keeps(w, &workerError{w.Name(), err})
	}
	write := ownWrite{deleted: a.Mirror.UID, at: r.clock.Now()}
	isIt := func(id usage.ID) bool { return id == usage.ID{Worker: w.Name(), UID: a.Mirror.UID} }
	t.record.update(func(m *memory) { m.repeated = a.Mirror.UID })
	t.record.updateGone(func(g *dispatch.Gone) { g.Mirrors = slices.DeleteFunc(slices.Clone(g.Mirrors), isIt) })
	t.record.updateMirror(w.Name(), func(m *mirrorMemory) {
		if m.write, m.refusal, m.isReplaced = write, "", true; m.last != nil && m.last.UID == a.Mirror.UID {
			m.last = nil // nothing is left of it that its Job waits for
		}
	})
	done := r.reportRepeated(ctx, t, w, repeated)
	done.changed = true
	return done, nil
}

// mayDelete makes the live reads of the hub that a deletion asks for. They count for nothing if the
// hub's etcd was put back: the next process finds out what it has forgotten.
func (r *Reconciler) mayDelete(ctx context.Context, t *turn, w worker, a dispatch.DeleteMirror) (may bool, err error) {
	if may = true; a.VerifyGone != "" {
		may, err = r.isGone(ctx, t.Key, a.VerifyGone)
	}
	if may && err == nil && a.VerifyStale {
		may, err = r.isStale(ctx, t, w.Name())
	}
	if may && err == nil && a.VerifyPart {
		var job *batchv1.Job
		job, err = t.liveJob(ctx)
		may = job != nil && t.isPlacedAlike(job, w.Name())
	}
	if may && err == nil && (a.VerifyGone != "" || a.VerifyStale || a.VerifyPart) {
		err = r.guard.Check(ctx)
	}
	return may, err
}

func (r *Reconciler) sendDeletion(ctx context.Context, t *turn, w worker, a dispatch.DeleteMirror) error {
	if a.Mirror.ResourceVersion != "" {
		return w.Client().Delete(ctx, a.Mirror, client.Preconditions{UID: &a.Mirror.UID}, client.PropagationPolicy(a.Propagation))
	}
	if !slices.Contains(t.record.read(t.Now).gone.Mirrors, usage.ID{Worker: w.Name(), UID: a.Mirror.UID}) {
		return nil // it has been deleted since the turn began
	}
	return r.deleteByUID(ctx, t, w, a.Mirror.UID, a.Propagation) // see Gone
}

// keeps remembers why a worker refuses to stop or delete a mirror, for the event NotReleased.
func (t *turn) keeps(w worker, err error) error {
	var answer *workerError
	if errors.As(err, &answer) && isRefusal(answer.err) {
		t.record.updateMirror(w.Name(), func(m *mirrorMemory) { m.refusal = text.Clean(answer.err.Error(), text.MaxMessage) })
	}
	return err
}

// repeated is what a stale mirror has completed that is made again elsewhere, unless it was deleted
// before: a cache may be behind.
func (r *Reconciler) repeated(t *turn, w worker, a dispatch.DeleteMirror) mirror.Repeated {
	if !a.Repeats || t.Job == nil || t.known.repeated == a.Mirror.UID {
		return mirror.Repeated{}
	}
	last, now := a.Mirror, r.clock.Now()
	if newer := heldBy(w, t.Key, t.record.read(now).mirrors[w.Name()].write, now); newer != nil && newer.UID == last.UID {
		last = newer
	}
	return mirror.RepeatedBy(t.Job, last)
}

// reportRepeated counts and reports what a stale mirror completed after its Job had been moved.
func (r *Reconciler) reportRepeated(ctx context.Context, t *turn, w worker, repeated mirror.Repeated) result {
	if repeated.Completions == 0 {
		return result{}
	}
	duplicatesTotal.WithLabelValues(w.Name()).Add(float64(repeated.Completions))
	message := fmt.Sprintf("Worker %s made %d completions that the hub did not know of when the Job was moved; they are made twice",
		w.Name(), repeated.Completions)
	if repeated.Indexes != "" {
		message += ": indexes " + repeated.Indexes
	}
	return r.tell(ctx, t, dispatch.Report{Reason: v1alpha1.EventRanTwice, Warning: true, Message: message})
}
