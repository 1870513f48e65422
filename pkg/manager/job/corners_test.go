package job

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/placement"
	"github.com/jobferry/jobferry/pkg/placement/placementtest"
)

var (
	noNamespace = apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "team")
	slow        = apierrors.NewTimeoutError("slow", 1)
)

// corner is something unusual in a Job's life: what the manager does, and where the Job ends up.
type corner struct {
	given func(*world)
	log   string // a part of what the manager does
	never string // what it doesn't do
	ends  string // where the Job runs; empty: nowhere
}

func checkCorners(t *testing.T, rows map[string]corner) {
	t.Helper()
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			row.given(w)
			w.step(time.Minute)
			log := strings.Join(w.since(0), "\n")
			if !strings.Contains(log, row.log) || row.never != "" && strings.Contains(log, row.never) {
				w.fail("want %q, and never %q", row.log, row.never)
			}
			for _, v := range w.registered() {
				if got := v.runs(jobKey); got != (v.Name() == row.ends) {
					w.fail("runs in %s: %v", v.Name(), got)
				}
			}
		})
	}
}

// hasNoNamespace has a worker refuse Jobs until their namespace is created.
func hasNoNamespace(w *world) {
	w.refuses = func(sent write) error {
		var namespace corev1.Namespace
		exists := w.worker("a").api.others.Get(w.Context(), types.NamespacedName{Name: "team"}, &namespace) == nil
		if sent.server == "a" && sent.verb == "create" && sent.isOfJob() && !exists {
			return noNamespace
		}
		return nil
	}
	w.submits(aJob("train"))
}

// mounts has a Job that mounts a PersistentVolumeClaim.
func mounts(job *batchv1.Job) {
	job.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
	}}}
}

// hasClaim gives the worker a claim, and no other; what others have is known, too.
func (v *fakeWorker) hasClaim() {
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "late"}, Provisioner: "p"}
	class.VolumeBindingMode = ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)
	claim := &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &class.Name}}
	for _, w := range v.world.registered() {
		w.volumes = &placementtest.Volumes{Classes: map[string]*storagev1.StorageClass{class.Name: class}}
	}
	v.volumes.Claims = map[string]map[string]*corev1.PersistentVolumeClaim{"team": {"data": claim}}
	v.world.triggers.CapacityFreed(v.Name(), placement.Change{Kinds: placement.VolumesChange})
}

// refusesOnce has one request fail.
func (w *world) refusesOnce(request string, err error) {
	w.refuses = func(sent write) error {
		if sent.server+" "+sent.verb != request {
			return nil
		}
		w.refuses = nil
		return err
	}
}

var newMirrors = map[string]corner{
	"the namespace is created": {hasNoNamespace, "a: create: NotFound\na: create Namespace team\na: create\n", "", "a"},
	"the namespace mustn't be created": {func(w *world) {
		w.worker("a").view.Spec.CreateNamespaces = ptr.To(false)
		hasNoNamespace(w)
	}, "event: MirrorRefused\nhub: patch cluster=b", "Namespace", "b"},
	"a PersistentVolumeClaim is elsewhere": {func(w *world) {
		w.worker("b").hasClaim()
		w.submits(aJob("train", mounts))
	}, "hub: patch cluster=b", "a: create", "b"},
	"a PersistentVolumeClaim is elsewhere, and no nodes are known": {func(w *world) {
		w.worker("a").view.Capacity.Known, w.worker("b").view.Capacity.Known = false, false
		w.worker("b").hasClaim()
		w.submits(aJob("train", mounts))
	}, "hub: patch cluster=b", "a: create", "b"},
	"a PersistentVolumeClaim comes later": {func(w *world) {
		w.worker("b").hasClaim()
		w.worker("b").volumes.Claims = nil
		w.submits(aJob("train", mounts))
		w.step(time.Second)
		w.worker("a").hasClaim()
	}, "event: Pending", "b: create", "a"},
	"PersistentVolumeClaims can't be read": {func(w *world) { w.submits(aJob("train", mounts)) }, "a: create", "b: create", "a"},
	"what has the name goes away": {func(w *world) {
		w.refusesOnce("a create", apierrors.NewAlreadyExists(jobsResource, "train"))
		w.submits(aJob("train"))
	}, "a: create: AlreadyExists\na: create", "", "a"},
	"what has the name can't be read": {func(w *world) {
		w.worker("a").has(aJob("train"))
		w.refusesOnce("a get", slow)
		w.submits(aJob("train"))
	}, "a: create: AlreadyExists\na: create: AlreadyExists\nevent: Conflict\nhub: patch cluster=b", "delete", "b"},
	"the worker that the Job left is slow": {func(w *world) {
		runs(w)
		w.worker("a").drains(true)
		w.answers = func(sent write) {
			if sent.server == "a" && sent.verb == "delete" {
				w.refusesOnce("a get", slow)
			}
		}
	}, "a: delete\nb: create suspended", "", "b"},
	"the cluster selector is invalid": {func(w *world) {
		w.submits(aJob("train", annotated(v1alpha1.AnnotationClusterSelector, "a in (")))
	}, "event: InvalidAnnotation", "hub: patch", ""},
	"the cluster selector changes": {func(w *world) {
		w.worker("b").view.Labels = map[string]string{"zone": "b"}
		runs(w)
		w.edits("selects another zone", annotated(v1alpha1.AnnotationClusterSelector, "zone=b"))
	}, "hub: patch cluster=b moved-at=12:00:02 moved-from=a moved-with=... placed-for=zone=b", "", "b"},
}

func TestNewMirrors(t *testing.T) { checkCorners(t, newMirrors) }

var cacheIsBehind = map[string]corner{
	"the Job isn't gone": {func(w *world) {
		runs(w)
		delete(w.seen, jobKey)
		w.triggers.Enqueue(jobKey)
	}, "", "a: delete", "a"},
	"the mirror isn't stale": {func(w *world) {
		runs(w)
		w.worker("a").drains(true)
		w.answers = func(sent write) {
			if sent.server == "hub" {
				w.answers = nil
				w.worker("a").drains(false)
				w.edits("takes the placement back", kept(hubstate.Cluster, "a"))
			}
		}
	}, "", "a: patch", "a"},
	"the fenced mirror is stale": {func(w *world) {
		runs(w)
		w.worker("a").api.change(jobKey, annotated(v1alpha1.AnnotationFenced, "2026-03-01T12:00:01Z"))
		w.deliver()
		w.edits("moves the Job", func(job *batchv1.Job) {
			kept(hubstate.Cluster, "b")(job)
			kept(hubstate.MovedFrom, "a")(job)
		})
	}, "a: patch suspend=true", "event: Confirmed", "b"},
	"the Job was deleted and made again": {func(w *world) {
		runs(w)
		w.edits("removes the finalizer", func(job *batchv1.Job) { job.Finalizers = nil })
		w.deletes(metav1.DeletePropagationBackground)
		w.submits(aJob("train"))
	}, "a: delete\nhub: patch cluster=a", "", "a"},
	"the Job is gone before its placement": {func(w *world) {
		w.submits(aJob("train"))
		w.deliver()
		w.deletes(metav1.DeletePropagationBackground)
	}, "hub: patch cluster=a finalizers=[jobferry.dev/mirror]: NotFound", "create", ""},
	"the Job is gone before its finalizer": {func(w *world) {
		runs(w)
		w.deletes(metav1.DeletePropagationBackground)
		w.refuses = func(sent write) error {
			if sent.server == "hub" && sent.verb == "patch" {
				w.edits("removes the finalizer", func(job *batchv1.Job) { job.Finalizers = nil })
			}
			return nil
		}
	}, "hub: patch finalizers=[]: NotFound", "", ""},
}

// What the hub itself says counts, not what its cache says.
func TestTheHubsCacheIsBehind(t *testing.T) { checkCorners(t, cacheIsBehind) }

// A status that the hub's API server rejects is reported, and not tried again until something has
// changed.
func TestStatusIsRejected(t *testing.T) {
	w := newWorld(t)
	w.submits(aJob("train"))
	tries := 0
	w.refuses = func(sent write) error {
		if sent.verb != "status" {
			return nil
		}
		tries++
		return apierrors.NewInvalid(schema.GroupKind{Kind: "Job"}, "train", nil)
	}
	w.step(time.Hour)
	if want := []string{v1alpha1.EventPlaced, v1alpha1.EventStatusRejected}; !slices.Equal(reasons(w.events), want) || tries != 1 {
		w.fail("%d tries, events %v", tries, w.events)
	}
	w.refuses = nil
	w.worker("a").completes(1)
	w.step(time.Second)
	if got := w.hub.jobs[jobKey].Status.Succeeded; got != 1 {
		w.fail("the hub shows %d completions", got)
	}
}

// Most Jobs that there are have ended. Nothing is remembered of their mirrors.
func TestNothingIsRememberedOfAnEndedMirror(t *testing.T) {
	w := newWorld(t)
	w.submits(aJob("train"))
	w.step(time.Second)
	if m := w.store.open(jobKey).mirrors["a"]; m == nil || m.creations.Count != 1 {
		w.fail("of a mirror that runs, the manager remembers %+v", m)
	}
	w.worker("a").completes(4)
	w.step(time.Minute)
	if m := w.store.open(jobKey).mirrors; m != nil {
		w.fail("of a mirror that has ended, the manager remembers %+v", m["a"])
	}
	w.deletes(metav1.DeletePropagationBackground)
	w.step(time.Minute)
	if len(w.store.records)+len(w.worker("a").api.jobs) > 0 {
		w.fail("the Job and its mirror weren't removed:\n%s", w.state())
	}
}

// The worker's events say why a Job has no Pods.
func TestPodsThatCannotBeCreated(t *testing.T) {
	w := newWorld(t)
	for i, message := range []string{"exceeded quota", "no such ServiceAccount"} {
		event := &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: message[:2]}, Message: message, Reason: failedCreate,
			LastTimestamp: metav1.NewTime(noon.Add(-time.Duration(i) * time.Minute)),
		}
		if err := w.worker("a").api.others.Create(t.Context(), event); err != nil {
			t.Fatal(err)
		}
	}
	hasNoPods(w)
	w.run()
	want := "PodsWaiting: Worker a: the Job's Pods can't be created: exceeded quota"
	if !slices.Contains(w.events, want) {
		w.fail("events %q, want %q", w.events, want)
	}
	w.worker("a").api.change(jobKey, func(m *batchv1.Job) { m.Status.Active, m.Status.Ready = 2, ptr.To[int32](2) })
	w.run()
	if m := w.store.open(jobKey).read(w.clock.Now()).mirrors["a"]; m.waiting != "" {
		t.Errorf("%s still waits", m.waiting)
	}
}

// A mirror that says nothing of a hub Job isn't ours, and is left alone.
func TestUnmarkedMirror(t *testing.T) {
	w := newWorld(t)
	w.worker("a").has(aJob("train", func(job *batchv1.Job) { job.Labels = map[string]string{v1alpha1.LabelOrigin: "hub-1"} }))
	w.submits(aJob("train"))
	w.step(time.Minute)
	if m := w.worker("a").api.jobs[jobKey]; m.DeletionTimestamp != nil || mirror.Suspended(m) || !w.running("b") {
		w.fail("ends as:\n%s", w.state())
	}
}

// A worker removes a mirror as soon as it has ended, as a TTL that its policy sets does: the event
// of its deletion tells the end, and the Job isn't run again.
func TestAnEndIsSeenInADeletion(t *testing.T) {
	for name, propagation := range map[string]metav1.DeletionPropagation{"gone": background, "while its Pods are removed": foreground} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			runs(w)
			a := w.worker("a")
			a.completes(3)
			a.work()
			a.idle = propagation == foreground // its garbage collector takes its time
			a.expires(propagation)
			w.step(time.Second)
			if job := w.hub.jobs[jobKey]; !mirror.Finished(job) || job.Status.Succeeded != 4 || a.api.created != 1 {
				w.fail("%d mirrors, %+v", a.api.created, job.Status)
			}
		})
	}
}

// lies has a Job be complete, and failed.
func lies(j *batchv1.Job) {
	for _, kind := range []batchv1.JobConditionType{batchv1.JobComplete, batchv1.JobFailed} {
		j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue})
	}
}

// Of a mirror that somebody deleted before its end, and of one whose last state the hub doesn't
// take, nothing counts: the Job runs on.
func TestALastStateThatIsNoEnd(t *testing.T) {
	for name, change := range map[string]func(*batchv1.Job){
		"it ran": func(*batchv1.Job) {},
		"its deletion failed it": func(j *batchv1.Job) {
			j.DeletionTimestamp, j.Finalizers = ptr.To(metav1.NewTime(noon.Add(time.Second))), []string{metav1.FinalizerDeleteDependents}
			j.Status.Failed, j.Status.Active = 7, 0
			for _, kind := range []batchv1.JobConditionType{batchv1.JobFailureTarget, batchv1.JobFailed} {
				j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{
					Type: kind, Status: corev1.ConditionTrue, Reason: batchv1.JobReasonBackoffLimitExceeded, LastTransitionTime: metav1.NewTime(noon.Add(2 * time.Second)),
				})
			}
		},
		"it lies": lies,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			runs(w)
			a := w.worker("a")
			a.api.change(jobKey, change)
			a.expires(background)
			w.step(time.Minute)
			if job := w.hub.jobs[jobKey]; mirror.Finished(job) || a.api.created != 2 {
				w.fail("%d mirrors, %+v", a.api.created, job.Status)
			}
		})
	}
}

// While no manager is there, a mirror that has run vanishes, or is restored from a backup without
// its status: that's told, and a Job that is to run once isn't run again.
func TestWhatNobodySawVanish(t *testing.T) {
	once := annotated(v1alpha1.AnnotationOnClusterLost, v1alpha1.OnClusterLostWait)
	failed := func(m *batchv1.Job) { m.Status.Active, m.Status.Ready, m.Status.Failed = 0, ptr.To[int32](0), 1 }
	for name, row := range map[string]struct {
		given    func(*world)
		restored bool
		creates  int
	}{
		"it ran": {given: func(*world) {}, creates: 1},
		"it ran, and a Pod succeeded": {given: func(w *world) {
			w.worker("a").completes(1)
			w.step(time.Second)
		}, creates: 1},
		"it was between two Pods": {given: func(w *world) {
			w.worker("a").idle = true
			w.worker("a").api.change(jobKey, failed)
			w.step(time.Second)
		}, creates: 1},
		"it's restored": {given: func(w *world) { accounted(w) }, restored: true, creates: 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			a := w.worker("a")
			w.submits(aJob("train", once))
			w.step(time.Second)
			row.given(w)
			m := a.api.jobs[jobKey].DeepCopy()
			a.expires(background)
			if row.restored {
				m.Status, m.ResourceVersion = batchv1.JobStatus{}, ""
				a.has(m)
			}
			w.start()
			w.step(time.Minute)
			if !slices.Contains(reasons(w.events), v1alpha1.EventMirrorRecreated) || a.api.created != row.creates {
				w.fail("%d mirrors, events %q", a.api.created, w.events)
			}
			if row.restored {
				return
			}
			if w.hub.jobs[jobKey].Status.Active > 0 {
				w.fail("it has Pods: %s", w.state())
			}
			a.idle = false
			w.start()
			w.step(time.Minute)
			if a.api.created != row.creates {
				w.fail("%d mirrors", a.api.created)
			}
			w.edits("lets it run again", annotated(v1alpha1.AnnotationOnClusterLost, v1alpha1.OnClusterLostResume))
			w.step(time.Minute)
			if w.hub.jobs[jobKey].Status.Active == 0 {
				w.fail("ends as:\n%s", w.state())
			}
		})
	}
}

// A worker where the hub may neither create nor read Jobs of a namespace refuses one: it runs
// elsewhere at once, also if it waits for lost workers. A worker that may have taken it is asked.
func TestAWorkerThatMayNotBeAsked(t *testing.T) {
	for name, lost := range map[string]bool{"which has refused the Job": false, "whose first answer was lost": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.refuses = func(sent write) error {
				switch {
				case sent.server != "a" || sent.verb != "create" && sent.verb != "get":
					return nil
				case lost:
					lost = false
					return slow
				default:
					return apierrors.NewForbidden(jobsResource, "train", errors.New("no rights in namespace team"))
				}
			}
			wasLost := lost
			w.submits(aJob("train", func(j *batchv1.Job) {
				j.Annotations = map[string]string{v1alpha1.AnnotationOnClusterLost: v1alpha1.OnClusterLostWait}
			}))
			w.step(10 * time.Second)
			if w.running("b") == wasLost {
				w.fail("events %q\n%s", w.events, w.state())
			}
		})
	}
}

// A policy of a worker changes how many completions a Job has: it runs elsewhere.
func TestCompletionsThatAWorkerChanges(t *testing.T) {
	w := newWorld(t)
	w.worker("a").api.takes = func(m *batchv1.Job) { m.Spec.Completions = ptr.To[int32](2) }
	w.submits(aJob("train"))
	w.step(time.Minute)
	if !w.running("b") || w.worker("a").api.jobs[jobKey] != nil || !slices.Contains(reasons(w.events), v1alpha1.EventMirrorRefused) {
		w.fail("events %q\n%s", w.events, w.state())
	}
}

// A fixed shard's mirror is made again without its status: it runs no index of another's.
func TestAShardThatIsRestored(t *testing.T) {
	w := newWorld(t)
	w.submits(divisible(12, 12))
	w.step(time.Second)
	b := w.worker("b")
	m := b.api.jobs[jobKey].DeepCopy()
	b.expires(background)
	m.Status, m.ResourceVersion = batchv1.JobStatus{}, ""
	b.has(m)
	w.mayRunTwice = true // until it's seen
	w.step(10 * time.Second)
	if !slices.Contains(reasons(w.events), v1alpha1.EventProgressRestored) {
		w.fail("events %q", w.events)
	}
	if twice := w.worker("a").running.Intersect(b.running); len(twice) > 0 {
		w.fail("%s run in both\n%s", twice, w.state())
	}
}
