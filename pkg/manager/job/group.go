package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/preference"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/manager/group"
	"github.com/jobferry/jobferry/pkg/manager/line"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/placement"
	"github.com/jobferry/jobferry/pkg/util/decoded"
)

// readGroup reads what is known of the Jobs that belong together with one, and tells them where
// that one still is.
func (r *Reconciler) readGroup(t *turn) {
	if t.Job == nil || t.unread != nil || t.Divided != nil || !mirror.Managed(t.Job) || mirror.Finished(t.Job) {
		return
	}
	id, elsewhere := t.record.leaves(t.MayRunIn())
	if id == (group.ID{}) {
		return
	}
	r.enqueueConcerned()
	t.Group = dispatch.Group{ID: id, Elsewhere: elsewhere}
	t.Return = nil // it would have to take the others along
	if t.Assigned == nil {
		return
	}
	if at, _ := r.line.Place(id, ""); at != "" && at != t.Assigned.Name {
		t.Assigned.Unwanted = cmp.Or(t.Assigned.Unwanted, fmt.Sprintf("%s runs in worker %s", id, at))
	}
}

// stopAsking lets another Job of the group ask, if this one did.
func (r *Reconciler) stopAsking(t *turn) {
	if t.Group.ID == (group.ID{}) {
		return
	}
	t.record.stopsAsking()
	r.enqueueConcerned()
}

// enqueueConcerned has the Jobs reconciled that a change of another one of their group concerns.
func (r *Reconciler) enqueueConcerned() {
	keys, over := r.store.concerned()
	if r.startup == nil || !r.startup.elected() {
		return // a standby looks at no Job
	}
	r.enqueueRelated(keys...)
	for _, id := range over {
		r.line.GroupOver(id)
	}
}

// asksForGroup completes a question about a Job of a group. Nil: the Job asks. Otherwise another
// one asks for all.
func (r *Reconciler) asksForGroup(ctx context.Context, t *turn, a dispatch.Place, q *line.Question) (waits *result, err error) {
	if q.Group, q.Leave = t.Group.ID, a.Leave; q.Group == (group.ID{}) {
		return nil, nil
	}
	if _, forAll := r.line.Place(q.Group, q.Leave); !forAll {
		return nil, nil
	}
	if !t.record.asks() {
		done := r.tell(ctx, t, dispatch.Report{Reason: v1alpha1.EventPending,
			Message: fmt.Sprintf("Another Job asks for a worker for all Jobs of %s", t.Group.ID)})
		done.waits, done.waitsForGroup, done.after = hubstate.InLine, true, r.options.Timing.Recheck
		return &done, nil
	}
	q.Kin, err = r.addMates(ctx, t.allowance, q.Group, &q.Request)
	return nil, err
}

// askedOfGroup adds to the request of an explanation what the Job's group asks for.
func (r *Reconciler) askedOfGroup(ctx context.Context, a *allowance, request *placement.Request) error {
	id, err := r.store.groups.kinds.Of(request.Job)
	if err != nil || id == (group.ID{}) {
		return err
	}
	at, forAll := r.line.Place(id, "")
	request.PassedOver = line.Restricted(request.PassedOver, at, id, r.workers.list())
	if forAll {
		_, err = r.addMates(ctx, a, id, request)
	}
	return err
}

// addMates has a Job ask for all of its group that have no room yet, and returns them.
func (r *Reconciler) addMates(ctx context.Context, a *allowance, id group.ID, request *placement.Request) ([]group.Kin, error) {
	kin, err := r.kinOf(ctx, a, id, keyOf(request.Job))
	if err != nil {
		return nil, err
	}
	for i := range kin[:min(len(kin), placement.MaxMates)] { // others aren't judged
		if pods := placement.PodsWanted(kin[i].Job) * int64(len(kin[i].Keys)); pods > 0 {
			request.Mates = append(request.Mates, placement.Mate{Job: kin[i].Job, Pods: pods})
		}
	}
	r.ruleOut(request.PassedOver, kin)
	return kin, nil
}

// maxKin bounds how many Jobs of a group are looked at one by one, when all are to be placed, and
// maxKinRead what they take together as they're unpacked: some 40 ms. The others follow as they
// come.
const (
	maxKin     = 256
	maxKinRead = 16 << 20
)

// kinOf are the other Jobs of a group that run, or are to: those that there are, and those that a
// JobSet will have.
func (r *Reconciler) kinOf(ctx context.Context, a *allowance, id group.ID, own types.NamespacedName) ([]group.Kin, error) {
	var all group.Kinship
	admissionOf := r.queues.Admissions(ctx)
	counted, read := map[types.NamespacedName]bool{own: true}, int64(0)
	for _, key := range r.store.jobsOf(id, maxKin, false) {
		if key == own || read > maxKinRead {
			continue
		}
		job, err := r.gatherer.cachedJob(ctx, key)
		if err != nil {
			return nil, err
		}
		if job == nil || mirror.Light(job) || job.DeletionTimestamp != nil {
			continue
		}
		size := decoded.Size(job)
		read += size
		if admission := admissionOf(job); admission.WantsCapacity(job) {
			all.Add(admission.AsResumed(job), size, key)
			counted[key] = true
		}
	}
	if !id.JobSet {
		return all.Sorted(), nil
	}
	set, err := r.readJobSet(ctx, a, id)
	if set == nil || err != nil {
		return all.Sorted(), err
	}
	for _, kin := range set.Jobs(func(key types.NamespacedName) bool { return counted[key] || r.store.isFinished(key) }) {
		admission := admissionOf(kin.Job)
		all.Add(admission.AsResumed(kin.Job), decoded.Size(kin.Job), kin.Keys...)
	}
	return all.Sorted(), nil
}

// readJobSet reads the JobSet of a group; nil: it's gone, or can't be read, so that only the Jobs
// count that it has already.
func (r *Reconciler) readJobSet(ctx context.Context, a *allowance, id group.ID) (*group.JobSet, error) {
	release, err := a.Reserve(group.JobSetWeight)
	if err != nil {
		return nil, err
	}
	set := group.NewJobSet(id)
	defer func() { release(set.Bytes) }()
	switch err := r.live.Get(ctx, types.NamespacedName{Namespace: id.Namespace, Name: id.Name}, set); {
	case apierrors.IsNotFound(err) || meta.IsNoMatchError(err) || err == nil && set.UID != id.Owner:
		return nil, nil
	case apierrors.IsForbidden(err) || errors.Is(err, group.ErrTooLarge):
		log.FromContext(ctx).Info("A JobSet can't be read, so that only the Jobs count that it has already", "cause", err.Error())
		return nil, nil
	case err != nil:
		return nil, &hubError{err}
	default:
		return set, nil
	}
}

// maxWants bounds the different selectors and preferences of a group's Jobs that are compared with
// all workers: each may have 250 terms. Further ones hold when their Jobs are looked at.
const maxWants = 32

// ruleOut adds the workers that other Jobs of the group don't want, or that can't take them: all go
// to one.
func (r *Reconciler) ruleOut(passedOver map[string]string, kin []group.Kin) {
	var keys []types.NamespacedName
	for i := range kin {
		keys = append(keys, kin[i].Keys...)
	}
	for worker, why := range r.store.passedOverBy(r.clock.Now(), keys...) {
		if passedOver[worker] == "" {
			passedOver[worker] = why
		}
	}
	workers, looked := r.workers.list(), map[[2]string]bool{}
	for i := range kin {
		job := kin[i].Job
		wants := [2]string{job.Annotations[v1alpha1.AnnotationClusterSelector], job.Annotations[v1alpha1.AnnotationClusterPreference]}
		if looked[wants] || len(looked) == maxWants {
			continue
		}
		looked[wants] = true
		selector, err := preference.ParseSelector(job.Annotations)
		preferred, invalid := preference.Parse(job.Annotations)
		if err != nil || invalid != nil {
			continue // that Job says so
		}
		for _, w := range workers {
			if passedOver[w.Name()] != "" {
				continue
			}
			if why := unwantedBy(selector, preferred, w.View().Labels, r.clock.Now()); why != "" {
				passedOver[w.Name()] = fmt.Sprintf("didn't match the cluster %s of Job %s of its group", why, kin[i].Keys[0].Name)
			}
		}
	}
}

// unwantedBy is what of a Job doesn't match the labels of a worker; empty: all does.
func unwantedBy(selector labels.Selector, preferred *preference.Preference, has labels.Set, now time.Time) string {
	if selector != nil && !selector.Matches(has) {
		return "selector"
	}
	if step, _ := preferred.StepOf(has, now); step == preference.None {
		return "preference"
	}
	return ""
}
