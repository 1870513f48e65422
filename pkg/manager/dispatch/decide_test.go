package dispatch

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/usage"
	"github.com/jobferry/jobferry/pkg/mirror"
)

const origin v1alpha1.Origin = "hub-1"

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// hubJob is a Job of ours that runs two Pods, on no worker yet.
func hubJob(changes ...func(*batchv1.Job)) *batchv1.Job {
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Annotations: map[string]string{},
			Namespace:   "team", Name: "train", UID: "hub-uid", ResourceVersion: "7", Generation: 1,
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
		hubstate.Set(j, hubstate.Changes{hubstate.Cluster: worker})
		j.Finalizers = []string{v1alpha1.FinalizerMirror}
	}
}

func suspendedJob(j *batchv1.Job) { j.Spec.Suspend = ptr.To(true) }

func deleting(j *batchv1.Job) { j.DeletionTimestamp = ptr.To(metav1.NewTime(noon)) }

func complete(j *batchv1.Job) {
	j.Finalizers = nil
	j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: batchv1.JobComplete, Status: corev1.ConditionTrue})
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

// at is a connected worker.
func at(name string, m *batchv1.Job, changes ...func(*Worker)) Worker {
	w := Worker{
		StartTimeout: DefaultTiming().StuckTimeout,
		Name:         name, Registered: true, Synced: true, JobController: v1alpha1.JobControllerBuiltIn, Minor: 36,
		Mirror: m, Fits: true,
	}
	for _, change := range changes {
		change(&w)
	}
	return w
}

func unreachable(w *Worker)  { w.Synced, w.Trouble = false, "no answer" }
func unregistered(w *Worker) { w.Synced, w.Registered = false, false }

func removing(p v1alpha1.RemovalPolicy) func(*Worker) {
	return func(w *Worker) { w.Removal = p }
}

// look makes the snapshot of a Job with these workers; the one that the Job is placed on is
// assigned. A Job that's being deleted is so in the foreground.
func look(job *batchv1.Job, workers ...Worker) *Snapshot {
	s := &Snapshot{
		Now: noon, Origin: origin, Key: types.NamespacedName{Namespace: "team", Name: "train"},
		Job: job, Timing: DefaultTiming(),
	}
	if job != nil {
		s.Accounted = usage.Read(job)
	}
	if job != nil && job.DeletionTimestamp != nil {
		s.Deletion = metav1.DeletePropagationForeground
	}
	for i := range workers {
		held := workers[i].Mirror
		workers[i].Mirror = nil
		s.SetMirror(&workers[i], held)
		if job != nil && workers[i].Name == hubstate.Get(job, hubstate.Cluster) {
			s.Assigned = &workers[i]
			continue
		}
		s.Others = append(s.Others, workers[i])
	}
	return s
}

// decision is what is to be decided of a Snapshot, and done.
type decision struct {
	given *Snapshot
	want  Situation
	then  []string
}

func checkDecisions(t *testing.T, rows map[string]decision) {
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			checkDecision(t, row.given, row.want, row.then)
		})
	}
}

func TestDecide(t *testing.T) {
	other := func(j *batchv1.Job) { j.Annotations[v1alpha1.AnnotationHubUID] = "another-uid" }
	unplaced := func(j *batchv1.Job) { j.Finalizers = []string{v1alpha1.FinalizerMirror} }
	held := func(j *batchv1.Job) { j.Finalizers = []string{v1alpha1.FinalizerMirror} }
	movedFrom := func(w string) func(*batchv1.Job) {
		return func(j *batchv1.Job) { hubstate.Set(j, hubstate.Changes{hubstate.MovedFrom: w}) }
	}
	placed := hubJob(placedOn("a"))
	rows := map[string]decision{
		"a new Job is placed":                     {look(hubJob()), Unplaced, []string{"place"}},
		"a placed Job gets its mirror":            {look(placed, at("a", nil)), MirrorMissing, []string{"create in a"}},
		"a Job that ran gets another":             {look(hubJob(placedOn("a"), running(0)), at("a", nil)), MirrorMissing, []string{"create in a"}},
		"a Job with progress is seeded":           {look(hubJob(placedOn("a"), succeeded(1)), at("a", nil)), MirrorMissing, []string{"create suspended in a"}},
		"a Job suspended at once waits":           {look(hubJob(suspendedJob)), Suspended, []string{"status"}},
		"suspended before it's mirrored":          {look(hubJob(placedOn("a"), suspendedJob), at("a", nil)), SuspendedAtWorker, []string{"status"}},
		"nobody's mirror goes":                    {look(nil, at("b", mirrorOf(hubJob()))), Absent, []string{"delete in b if gone from hub"}},
		"a Job of others is left alone":           {look(hubJob(func(j *batchv1.Job) { j.Spec.ManagedBy = nil })), Absent, nil},
		"... unless it was made from one of ours": {look(hubJob(placedOn("a"), deleting, func(j *batchv1.Job) { j.Spec.ManagedBy = nil })), Absent, []string{"remove finalizer"}},
		"a former Job's mirror goes first":        {look(placed, at("a", mirrorOf(hubJob(), other))), NameTaken, []string{"delete in a if gone from hub"}},
		"... and only there":                      {look(placed, at("a", nil), at("b", mirrorOf(hubJob(), other))), MirrorMissing, []string{"create in a", "delete in b if gone from hub"}},
		"a copy elsewhere delays nobody":          {look(placed, at("a", nil), at("b", mirrorOf(hubJob()))), MirrorMissing, []string{"create in a", "suspend and delete in b if stale"}},
		"... nor a Job that runs":                 {look(placed, at("a", mirrorOf(placed)), at("b", mirrorOf(placed)), at("c", mirrorOf(placed, deleting))), Mirrored, []string{"suspend and delete in b if stale"}},
		"a copy that can't be asked holds":        {look(hubJob(placedOn("a"), movedFrom("b")), at("a", nil), at("b", nil, unreachable)), Handover, nil},
		"the former worker is clear":              {look(hubJob(placedOn("a"), movedFrom("b")), at("a", nil), at("b", nil)), MirrorMissing, []string{"confirm that b is left", "create in a"}},
		"a lost annotation is restored":           {look(hubJob(unplaced), at("b", mirrorOf(hubJob()))), PlacementMissing, []string{"restore to b"}},
		"a Job that never was placed has none":    {look(hubJob(), at("b", mirrorOf(hubJob()))), Unplaced, []string{"place", "suspend and delete in b if stale"}},
		"a deleted Job takes its mirror":          {look(hubJob(placedOn("a"), deleting), at("a", mirrorOf(placed))), Deleting, []string{"delete in a"}},
		"a deleted Job waits for it":              {look(hubJob(placedOn("a"), deleting), at("a", mirrorOf(placed, deleting))), Deleting, nil},
		"a deleted Job goes after it":             {look(hubJob(placedOn("a"), deleting), at("a", nil)), Deleting, []string{"confirm that a is left", "remove finalizer"}},
		"a deleted Job waits for a worker":        {look(hubJob(placedOn("a"), deleting), at("a", nil, unreachable)), Deleting, nil},
		"... even if its mirror is known":         {look(hubJob(placedOn("a"), deleting), at("a", mirrorOf(placed), unreachable)), Deleting, nil},
		"... unless it's lost":                    {look(hubJob(placedOn("a"), deleting), at("a", mirrorOf(placed), lost)), Deleting, []string{"remove finalizer"}},
		"a deleted Job waits for no other copy":   {look(hubJob(placedOn("a"), deleting), at("a", nil), at("b", mirrorOf(placed))), Deleting, []string{"confirm that a is left", "remove finalizer", "suspend and delete in b if stale"}},
		"no worker to wait for":                   {look(hubJob(placedOn("a"), deleting), at("a", nil, unregistered)), Deleting, []string{"remove finalizer"}},
		"deleted without our finalizer":           {look(hubJob(deleting)), Deleting, nil},
		"finished is finished":                    {look(hubJob(placedOn("a"), complete), at("a", nil)), Finished, nil},
		"finished keeps its mirror":               {look(hubJob(placedOn("a"), complete), at("a", mirrorOf(placed, complete))), Finished, nil},
		"finished, its mirror was restored":       {look(hubJob(placedOn("a"), complete), at("a", mirrorOf(placed))), Finished, []string{"suspend and delete in a"}},
		"finished, it was restored suspended":     {look(hubJob(placedOn("a"), complete), at("a", mirrorOf(placed, suspendedJob))), Finished, []string{"delete in a"}},
		"finished, it was restored unseen":        {look(hubJob(placedOn("a"), complete), at("a", mirrorOf(placed), unreachable)), Finished, nil},
		"finished, worker leaves":                 {look(hubJob(placedOn("a"), complete), at("a", mirrorOf(placed), removing(v1alpha1.RemovalWait))), Finished, []string{"delete in a"}},
		"finished by somebody else":               {look(hubJob(placedOn("a"), complete, held), at("a", mirrorOf(placed, complete))), Finished, []string{"remove finalizer"}},
		"finished, worker left":                   {look(hubJob(placedOn("a"), complete), at("a", nil, unregistered)), Finished, nil},
		"finished, its mirror has gone":           {look(hubJob(placedOn("a"), complete), at("a", nil, removing(v1alpha1.RemovalMove))), Finished, nil},
		"finished, worker leaves unseen":          {look(hubJob(placedOn("a"), complete), at("a", nil, unreachable, removing(v1alpha1.RemovalMove))), Finished, nil},
		"finished, worker left, the former away":  {look(hubJob(placedOn("a"), movedFrom("b"), complete), at("a", nil, unregistered), at("b", mirrorOf(placed), unreachable)), Finished, nil},
		"finished, worker left, a copy elsewhere": {look(hubJob(placedOn("a"), complete), at("a", nil, unregistered), at("b", mirrorOf(placed), unreachable)), Finished, nil},
		"finished, others' finalizers keep it":    {look(hubJob(placedOn("a"), complete, deleting), at("a", mirrorOf(placed, complete))), Finished, nil},
		"... and its worker leaves":               {look(hubJob(placedOn("a"), complete, deleting), at("a", mirrorOf(placed, complete), removing(v1alpha1.RemovalWait))), Finished, []string{"delete in a"}},
		"... and it was on another before":        {look(hubJob(placedOn("a"), movedFrom("b"), complete, deleting), at("a", nil), at("b", mirrorOf(placed))), Finished, []string{"suspend and delete in b if stale"}},
		"finished, worker left in peace":          {look(hubJob(placedOn("a"), complete), at("a", mirrorOf(placed), removing(v1alpha1.RemovalOrphan))), Finished, []string{"disown in a"}},
		"worker not registered":                   {look(placed, at("a", nil, unregistered)), WorkerUnregistered, []string{"move from a"}},
		"suspended, worker being emptied":         {look(hubJob(placedOn("a"), suspendedJob), at("a", nil, removing(v1alpha1.RemovalMove))), WorkerBeingRemoved, []string{"move from a"}},
		"not started, worker leaves":              {look(placed, at("a", nil, removing(v1alpha1.RemovalWait))), WorkerBeingRemoved, []string{"move from a"}},
		"a former worker away stops nobody":       {look(hubJob(placedOn("a"), movedFrom("b")), at("a", mirrorOf(placed)), at("b", nil, unreachable)), Mirrored, nil},
		"a stale mirror away stops nobody":        {look(placed, at("a", mirrorOf(placed)), at("b", mirrorOf(placed), unreachable)), Mirrored, nil},
		"a stale mirror away delays nobody":       {look(placed, at("a", nil), at("b", mirrorOf(placed), unreachable)), MirrorMissing, []string{"create in a"}},
		"an orphaned mirror away delays nobody":   {look(placed, at("a", nil), at("b", mirrorOf(hubJob(), other), unreachable)), MirrorMissing, []string{"create in a"}},
		"an orphaned mirror away isn't restored":  {look(hubJob(), at("b", mirrorOf(hubJob(), other), unreachable)), Unplaced, []string{"place"}},
		"worker out of touch":                     {look(placed, at("a", mirrorOf(placed), unreachable)), WorkerUnreachable, nil},
		"worker still connecting":                 {look(placed, at("a", nil, unreachable, func(w *Worker) { w.Connecting = true })), WorkerUnreachable, nil},
		"worker being emptied":                    {look(placed, at("a", mirrorOf(placed), removing(v1alpha1.RemovalMove))), WorkerBeingRemoved, []string{"move from a"}},
		"worker leaves when it's done":            {look(placed, at("a", mirrorOf(placed), removing(v1alpha1.RemovalWait))), Mirrored, nil},
		"the mirror is being deleted there":       {look(placed, at("a", mirrorOf(placed, deleting))), MirrorDeleted, nil},
		"all is well":                             {look(placed, at("a", mirrorOf(placed))), Mirrored, nil},
	}
	checkDecisions(t, rows)
}
