package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
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
	"github.com/jobferry/jobferry/pkg/util/digest"
)

// lookAtGroup reads what is known of the Jobs that belong together with one, and tells them where
// that one still is.
func (r *Reconciler) lookAtGroup(t *turn) {
	if t.Job == nil || t.unread != nil || t.Divided != nil || !mirror.Managed(t.Job) || mirror.Finished(t.Job) {
		return
	}
	id := t.record.leaves(t.MayRunIn())
	if id == (group.ID{}) {
		return
	}
	r.lookAtConcerned()
	t.Group = dispatch.Group{ID: id, Elsewhere: t.record.elsewhere()}
	t.Return = nil // it would have to take the others along
	if t.Assigned == nil {
		return
	}
	if at := r.line.Place(id, ""); at != "" && at != t.Assigned.Name {
		t.Assigned.Unwanted = cmp.Or(t.Assigned.Unwanted, fmt.Sprintf("%s runs in worker %s", id, at))
	}
}

// stopAsking lets another Job of the group ask, if this one did.
func (r *Reconciler) stopAsking(t *turn) {
	t.record.stopsAsking()
	r.lookAtConcerned()
}

// lookAtConcerned has the Jobs reconciled that a change of another one of their group concerns.
func (r *Reconciler) lookAtConcerned() {
	keys, over := r.store.concerned()
	if r.startup == nil || !r.startup.elected() {
		return // a standby looks at no Job
	}
	r.enqueue(keys...)
	for _, id := range over {
		r.line.GroupOver(id)
	}
}

// asksForGroup completes a question about a Job of a group. Nil: the Job asks. Otherwise another
// one asks for all.
func (r *Reconciler) asksForGroup(ctx context.Context, t *turn, a dispatch.Place, q *line.Question) (waits *result, err error) {
	q.Group, q.Leave = t.Group.ID, a.Leave
	if q.Group == (group.ID{}) || !r.line.NeedsKin(q.Group, q.Leave) {
		return nil, nil
	}
	if asker := t.record.asks(); asker != t.Key.Name {
		done := r.tell(ctx, t, dispatch.Report{Reason: v1alpha1.EventPending,
			Message: fmt.Sprintf("Job %s asks for a worker for all Jobs of %s", asker, t.Group.ID)})
		done.waits, done.waitsForGroup, done.after = hubstate.InLine, true, r.options.Timing.Recheck
		return &done, nil
	}
	kin, err := r.kinOf(ctx, t.whole, t.Group.ID, t.Key)
	if err != nil {
		return nil, err
	}
	q.Kin, q.Mates = kin, line.Mates(kin)
	r.ruleOut(q.PassedOver, t.Group.ID, kin)
	return nil, nil
}

// askedOfGroup adds to the request of an explanation what the Job's group asks for.
func (r *Reconciler) askedOfGroup(ctx context.Context, hub *allowance, s *dispatch.Snapshot, request *placement.Request) error {
	id, err := r.store.groups.kinds.Of(s.Job)
	if err != nil || id == (group.ID{}) {
		return err
	}
	if at := r.line.Place(id, ""); at != "" {
		request.PassedOver = line.Restricted(request.PassedOver, at, id, r.workers.list())
		return nil
	}
	kin, err := r.kinOf(ctx, hub, id, s.Key)
	if err != nil {
		return err
	}
	request.Mates = line.Mates(kin)
	r.ruleOut(request.PassedOver, id, kin)
	return nil
}

// maxKin bounds how many Jobs of a group are looked at one by one, when all are to be placed.
const maxKin = 256

// kinOf are the other Jobs of a group that run, or are to: those that there are, and those that a
// JobSet will have.
func (r *Reconciler) kinOf(ctx context.Context, whole *allowance, id group.ID, own types.NamespacedName) ([]line.Kin, error) {
	all, counted := &kinship{byTemplate: map[shapeOfKin]int{}}, map[types.NamespacedName]bool{own: true}
	for _, key := range r.store.jobsOf(id, maxKin, false) {
		if key == own {
			continue
		}
		job := r.gatherer.cachedJob(ctx, key)
		if job == nil || mirror.Light(job) || job.DeletionTimestamp != nil {
			continue
		}
		if admission := r.queues.Admission(ctx, job); admission.WantsCapacity(job) {
			all.add(admission.AsResumed(job), key)
			counted[key] = true
		}
	}
	if !id.JobSet {
		return all.sorted(), nil
	}
	set, err := r.readJobSet(ctx, whole, id)
	if set == nil || err != nil {
		return all.sorted(), err
	}
	inNamespace := func(name string) types.NamespacedName {
		return types.NamespacedName{Namespace: id.Namespace, Name: name}
	}
	for _, kin := range set.Jobs(func(name string) bool { return counted[inNamespace(name)] || r.store.isFinished(inNamespace(name)) }) {
		keys := make([]types.NamespacedName, 0, len(kin.Names))
		for _, name := range kin.Names {
			keys = append(keys, inNamespace(name))
		}
		admission := r.queues.Admission(ctx, kin.Job)
		all.add(admission.AsResumed(kin.Job), keys...)
	}
	return all.sorted(), nil
}

// readJobSet reads the JobSet of a group; nil: it's gone, or can't be read, so that only the Jobs
// count that it has already.
func (r *Reconciler) readJobSet(ctx context.Context, whole *allowance, id group.ID) (*group.JobSet, error) {
	release, err := whole.Reserve(group.JobSetWeight)
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

// kinship gathers Jobs of a group by what their Pods are.
type kinship struct {
	kin        []line.Kin
	byTemplate map[shapeOfKin]int
}

// shapeOfKin is what Jobs have in common that are alike.
type shapeOfKin struct {
	template digest.Digest
	pods     int64
}

func (k *kinship) add(job *batchv1.Job, keys ...types.NamespacedName) {
	pods := placement.PodsWanted(job)
	template := shapeOfKin{templateOf(job), pods}
	i, known := k.byTemplate[template]
	if !known {
		i = len(k.kin)
		k.byTemplate[template] = i
		k.kin = append(k.kin, line.Kin{Job: job, Pods: pods})
	}
	k.kin[i].Keys = append(k.kin[i].Keys, keys...)
}

// sorted are the same whatever the order in which they were added.
func (k *kinship) sorted() []line.Kin {
	for i := range k.kin {
		slices.SortFunc(k.kin[i].Keys, func(a, b types.NamespacedName) int { return strings.Compare(a.Name, b.Name) })
	}
	slices.SortFunc(k.kin, func(a, b line.Kin) int { return strings.Compare(a.Keys[0].Name, b.Keys[0].Name) })
	return k.kin
}

// templateOf is equal of Jobs whose Pods are alike, but for the labels that tell Jobs apart, and
// that ask for the same workers.
func templateOf(job *batchv1.Job) digest.Digest {
	labels := maps.Clone(job.Spec.Template.Labels)
	maps.DeleteFunc(labels, func(key, _ string) bool { return group.IsOfOneJob(key) })
	spec, err := job.Spec.Template.Spec.Marshal()
	if err != nil { // it never fails
		spec = []byte(err.Error())
	}
	return digest.Of(fmt.Sprint(labels, job.Annotations[v1alpha1.AnnotationClusterSelector], "\n", job.Annotations[v1alpha1.AnnotationClusterPreference], "\n", string(spec)))
}

// ruleOut adds the workers that other Jobs of the group don't want, or that can't take them: all go
// to one.
func (r *Reconciler) ruleOut(passedOver map[string]string, id group.ID, kin []line.Kin) {
	for worker, why := range r.store.passedOverBy(id, r.clock.Now()) {
		if passedOver[worker] == "" {
			passedOver[worker] = why
		}
	}
	for i := range kin {
		job := kin[i].Job
		selector, err := preference.ParseSelector(job.Annotations)
		preferred, invalid := preference.Parse(job.Annotations)
		if err != nil || invalid != nil {
			continue // that Job says so
		}
		for _, w := range r.workers.list() {
			has := labels.Set(w.View().Labels)
			why := ""
			if selector != nil && !selector.Matches(has) {
				why = "selector"
			} else if step, _ := preferred.StepOf(has, r.clock.Now()); step == preference.None {
				why = "preference"
			}
			if why != "" && passedOver[w.Name()] == "" {
				passedOver[w.Name()] = fmt.Sprintf("didn't match the cluster %s of Job %s of its group", why, kin[i].Keys[0].Name)
			}
		}
	}
}
