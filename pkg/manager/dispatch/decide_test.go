package dispatch

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
)

const origin v1alpha1.Origin = "hub-1"

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// hubJob is a Job of ours that runs two Pods, on no worker yet.
func hubJob(changes ...func(*batchv1.Job)) *batchv1.Job {
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team", Name: "train", UID: "hub-uid", ResourceVersion: "7", Generation: 1,
			CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour)),
		},
		Spec: batchv1.JobSpec{
			ManagedBy:   ptr.To(v1alpha1.ManagedByDispatcher),
			Parallelism: ptr.To[int32](2), Completions: ptr.To[int32](2), BackoffLimit: ptr.To[int32](6), Suspend: ptr.To(false),
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever,
				Containers:    []corev1.Container{{Name: "main", Image: "busybox"}},
			}},
		},
	}
	for _, change := range changes {
		change(job)
	}
	return job
}

func placedOn(worker string) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		j.Annotations = map[string]string{v1alpha1.AnnotationCluster: worker}
		j.Finalizers = []string{v1alpha1.FinalizerMirror}
	}
}

func suspendedJob(j *batchv1.Job) { j.Spec.Suspend = ptr.To(true) }

func deleting(j *batchv1.Job) { j.DeletionTimestamp = ptr.To(metav1.NewTime(noon)) }

func complete(j *batchv1.Job) {
	j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
}

func succeeded(n int32) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		j.Status.Succeeded = n
		j.Status.StartTime = ptr.To(metav1.NewTime(noon.Add(-30 * time.Minute)))
	}
}

// mirrorOf is the mirror of a hub Job, with the worker's defaults.
func mirrorOf(hub *batchv1.Job, changes ...func(*batchv1.Job)) *batchv1.Job {
	m := mirror.Project(hub, mirror.Target{Origin: origin})
	m.UID, m.ResourceVersion = "mirror-of-"+hub.UID, "3"
	m.CreationTimestamp = metav1.NewTime(noon.Add(-10 * time.Second))
	for _, change := range changes {
		change(m)
	}
	return m
}

// seat is a worker in touch.
func seat(worker string, m *batchv1.Job, changes ...func(*Seat)) Seat {
	s := Seat{Worker: worker, Registered: true, Synced: true, JobController: v1alpha1.JobControllerBuiltIn, Minor: 36, Mirror: m}
	for _, change := range changes {
		change(&s)
	}
	return s
}

func outOfTouch(s *Seat)   { s.Synced, s.Trouble = false, "no answer" }
func unregistered(s *Seat) { s.Synced, s.Registered = false, false }
func removing(p v1alpha1.RemovalPolicy) func(*Seat) {
	return func(s *Seat) { s.Removal = p }
}

// look makes the snapshot of a Job with these seats; the first is home if the Job is placed there.
func look(job *batchv1.Job, seats ...Seat) *Snapshot {
	s := &Snapshot{
		Now: noon, Origin: origin, Key: types.NamespacedName{Namespace: "team", Name: "train"},
		Job: job, Fits: true, Timing: DefaultTiming(),
	}
	for i := range seats {
		if job != nil && seats[i].Worker == job.Annotations[v1alpha1.AnnotationCluster] {
			s.Home = &seats[i]
			continue
		}
		s.Elsewhere = append(s.Elsewhere, seats[i])
	}
	return s
}

func TestDecide(t *testing.T) {
	other := func(j *batchv1.Job) { j.Annotations[v1alpha1.AnnotationHubUID] = "another-uid" }
	letGo := func(j *batchv1.Job) { j.Finalizers = nil }
	movedFrom := func(w string) func(*batchv1.Job) {
		return func(j *batchv1.Job) { j.Annotations[v1alpha1.AnnotationMovedFrom] = w }
	}
	placed := hubJob(placedOn("a"))
	rows := map[string]struct {
		given *Snapshot
		want  Situation
		then  []string
	}{
		"a new Job is placed":                     {look(hubJob()), Unplaced, []string{"place"}},
		"a placed Job gets its mirror":            {look(placed, seat("a", nil)), Unmirrored, []string{"create in a"}},
		"a Job that ran gets another":             {look(hubJob(placedOn("a"), running(0)), seat("a", nil)), Unmirrored, []string{"create in a if still wanted"}},
		"a Job with progress is seeded":           {look(hubJob(placedOn("a"), succeeded(1)), seat("a", nil)), Unmirrored, []string{"create suspended in a if still wanted"}},
		"a Job suspended at once waits":           {look(hubJob(suspendedJob)), SuspendedAtHub, []string{"status"}},
		"suspended before it's mirrored":          {look(hubJob(placedOn("a"), suspendedJob), seat("a", nil)), SuspendedAtHub, []string{"status"}},
		"nobody's mirror goes":                    {look(nil, seat("b", mirrorOf(hubJob()))), Absent, []string{"delete in b if gone from hub"}},
		"a Job of others is left alone":           {look(hubJob(func(j *batchv1.Job) { j.Spec.ManagedBy = nil })), Absent, nil},
		"a former Job's mirror goes first":        {look(placed, seat("a", mirrorOf(hubJob(), other))), Leftover, []string{"delete in a if gone from hub"}},
		"a copy elsewhere goes first":             {look(placed, seat("a", nil), seat("b", mirrorOf(hubJob()))), Stray, []string{"suspend in b", "delete in b if placed elsewhere"}},
		"a copy that can't be asked holds":        {look(hubJob(placedOn("a"), movedFrom("b")), seat("a", nil), seat("b", nil, outOfTouch)), Stray, nil},
		"the former worker is clear":              {look(hubJob(placedOn("a"), movedFrom("b")), seat("a", nil), seat("b", nil)), Unmirrored, []string{"create in a"}},
		"a lost annotation is restored":           {look(hubJob(), seat("b", mirrorOf(hubJob()))), Displaced, []string{"place at b"}},
		"a deleted Job takes its mirror":          {look(hubJob(placedOn("a"), deleting), seat("a", mirrorOf(placed))), Deleting, []string{"delete in a"}},
		"a deleted Job waits for it":              {look(hubJob(placedOn("a"), deleting), seat("a", mirrorOf(placed, deleting))), Deleting, nil},
		"a deleted Job goes after it":             {look(hubJob(placedOn("a"), deleting), seat("a", nil)), Deleting, []string{"let go"}},
		"a deleted Job waits for a worker":        {look(hubJob(placedOn("a"), deleting), seat("a", nil, outOfTouch)), Deleting, nil},
		"... even if its mirror is known":         {look(hubJob(placedOn("a"), deleting), seat("a", mirrorOf(placed), outOfTouch)), Deleting, nil},
		"no worker to wait for":                   {look(hubJob(placedOn("a"), deleting), seat("a", nil, unregistered)), Deleting, []string{"let go"}},
		"deleted without our finalizer":           {look(hubJob(deleting)), Deleting, nil},
		"finished is finished":                    {look(hubJob(placedOn("a"), complete), seat("a", nil)), Finished, nil},
		"finished keeps its mirror":               {look(hubJob(placedOn("a"), complete), seat("a", mirrorOf(placed))), Finished, nil},
		"finished, worker leaves":                 {look(hubJob(placedOn("a"), complete), seat("a", mirrorOf(placed), removing(v1alpha1.RemovalWait))), Finished, []string{"delete in a"}},
		"finished, worker left":                   {look(hubJob(placedOn("a"), complete), seat("a", nil, unregistered)), Finished, []string{"let go"}},
		"finished, its mirror has gone":           {look(hubJob(placedOn("a"), complete), seat("a", nil, removing(v1alpha1.RemovalMove))), Finished, []string{"let go"}},
		"finished, worker leaves unseen":          {look(hubJob(placedOn("a"), complete), seat("a", nil, outOfTouch, removing(v1alpha1.RemovalMove))), Finished, nil},
		"finished, worker left, let go":           {look(hubJob(placedOn("a"), complete, letGo), seat("a", nil, unregistered)), Finished, nil},
		"finished, worker left, a copy elsewhere": {look(hubJob(placedOn("a"), complete), seat("a", nil, unregistered), seat("b", mirrorOf(placed), outOfTouch)), Finished, nil},
		"finished, worker left in peace":          {look(hubJob(placedOn("a"), complete), seat("a", mirrorOf(placed), removing(v1alpha1.RemovalOrphan))), Finished, []string{"disown in a"}},
		"worker not registered":                   {look(placed, seat("a", nil, unregistered)), HomeUnknown, []string{"move from a"}},
		"suspended, worker being emptied":         {look(hubJob(placedOn("a"), suspendedJob), seat("a", nil, removing(v1alpha1.RemovalMove))), HomeBeingRemoved, []string{"move from a"}},
		"not started, worker leaves":              {look(placed, seat("a", nil, removing(v1alpha1.RemovalWait))), HomeBeingRemoved, []string{"move from a"}},
		"a former worker away stops nobody":       {look(hubJob(placedOn("a"), movedFrom("b")), seat("a", mirrorOf(placed)), seat("b", nil, outOfTouch)), Mirrored, nil},
		"a stray away stops nobody":               {look(placed, seat("a", mirrorOf(placed)), seat("b", mirrorOf(placed), outOfTouch)), Mirrored, nil},
		"a stray away keeps from starting":        {look(placed, seat("a", nil), seat("b", mirrorOf(placed), outOfTouch)), Stray, nil},
		"a leftover away is nobody's":             {look(placed, seat("a", nil), seat("b", mirrorOf(hubJob(), other), outOfTouch)), Unmirrored, []string{"create in a"}},
		"a leftover away isn't come back to":      {look(hubJob(), seat("b", mirrorOf(hubJob(), other), outOfTouch)), Unplaced, []string{"place"}},
		"worker out of touch":                     {look(placed, seat("a", mirrorOf(placed), outOfTouch)), HomeOutOfTouch, nil},
		"worker still connecting":                 {look(placed, seat("a", nil, outOfTouch, func(s *Seat) { s.Connecting = true })), HomeOutOfTouch, nil},
		"worker being emptied":                    {look(placed, seat("a", mirrorOf(placed), removing(v1alpha1.RemovalMove))), HomeBeingRemoved, []string{"move from a"}},
		"worker leaves when it's done":            {look(placed, seat("a", mirrorOf(placed), removing(v1alpha1.RemovalWait))), Mirrored, nil},
		"the mirror is being deleted there":       {look(placed, seat("a", mirrorOf(placed, deleting))), MirrorLeaving, nil},
		"all is well":                             {look(placed, seat("a", mirrorOf(placed))), Mirrored, nil},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			checkDecision(t, row.given, row.want, row.then)
		})
	}
}
