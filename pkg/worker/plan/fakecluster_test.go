package plan

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

var (
	errConflict = errors.New("conflict")
	errCrash    = errors.New("the controller was killed")
	errRefused  = errors.New("refused")
)

// fakeCluster is an API server with one Job and its Pods, the kubelets, and the cache of a
// controller, which sees changes late but in order.
type fakeCluster struct {
	now     time.Time
	version int
	job     *batchv1.Job
	pods    map[types.UID]*corev1.Pod

	cachedJob  *batchv1.Job
	cachedPods map[types.UID]*corev1.Pod
	jobEvents  []*batchv1.Job
	podEvents  []podEvent

	writesLeft int // the controller is killed when it has none left; -1: never
	// No Pod can be deleted, or untracked and released.
	refusesDeletions, refusesPatches bool

	// What really happened, to hold the counters against.
	succeeded, failed, deleted sets.Set[types.UID]
	elastic                    bool // completions were changed: succeeded may fall
	log                        []string
}

type podEvent struct {
	uid types.UID
	pod *corev1.Pod // nil: gone
}

func newFakeCluster(job *batchv1.Job) *fakeCluster {
	w := &fakeCluster{
		now: noon, pods: map[types.UID]*corev1.Pod{}, writesLeft: -1,
		succeeded: sets.New[types.UID](), failed: sets.New[types.UID](), deleted: sets.New[types.UID](),
	}
	w.job = job.DeepCopy()
	w.storeJob()
	w.relist()
	return w
}

func (w *fakeCluster) logf(format string, args ...any) {
	w.log = append(w.log, w.now.Format("15:04:05 ")+fmt.Sprintf(format, args...))
}

func (w *fakeCluster) nextVersion() string { w.version++; return strconv.Itoa(w.version) }

func (w *fakeCluster) storeJob() {
	w.job.ResourceVersion = w.nextVersion()
	w.jobEvents = append(w.jobEvents, w.job.DeepCopy())
}

// storeEdit is storeJob after a change of the spec.
func (w *fakeCluster) storeEdit() {
	w.job.Generation++
	w.storeJob()
}

func (w *fakeCluster) storePod(p *corev1.Pod) {
	p.ResourceVersion = w.nextVersion()
	if p.DeletionTimestamp != nil && len(p.Finalizers) == 0 && (p.Spec.NodeName == "" || Ended(p)) {
		delete(w.pods, p.UID)
		w.podEvents = append(w.podEvents, podEvent{uid: p.UID})
		return
	}
	w.podEvents = append(w.podEvents, podEvent{p.UID, p.DeepCopy()})
}

// relist is what a new controller's cache starts with.
func (w *fakeCluster) relist() {
	w.jobEvents, w.podEvents = nil, nil
	w.cachedJob = w.job.DeepCopy()
	w.cachedPods = map[types.UID]*corev1.Pod{}
	for uid, p := range w.pods {
		w.cachedPods[uid] = p.DeepCopy()
	}
}

// deliver brings the oldest events of each kind to the cache.
func (w *fakeCluster) deliver(jobs, pods int) {
	for ; jobs > 0 && len(w.jobEvents) > 0; jobs-- {
		w.cachedJob, w.jobEvents = w.jobEvents[0], w.jobEvents[1:]
	}
	for ; pods > 0 && len(w.podEvents) > 0; pods-- {
		event := w.podEvents[0]
		w.podEvents = w.podEvents[1:]
		if event.pod == nil {
			delete(w.cachedPods, event.uid)
		} else {
			w.cachedPods[event.uid] = event.pod
		}
	}
}

// The requests of the controller. Each may be its last one.

func (w *fakeCluster) spend() error {
	if w.writesLeft == 0 {
		return errCrash
	}
	w.writesLeft--
	return nil
}

func (w *fakeCluster) spendUnless(refused bool) error {
	if refused {
		return errRefused
	}
	return w.spend()
}

func (w *fakeCluster) create(p *corev1.Pod) (*corev1.Pod, error) {
	if err := w.spend(); err != nil {
		return nil, err
	}
	p = p.DeepCopy()
	p.UID = types.UID("pod-" + strconv.Itoa(w.version))
	p.Name = p.GenerateName + strconv.Itoa(w.version)
	p.CreationTimestamp = metav1.NewTime(w.now)
	p.Status.Phase = corev1.PodPending
	w.pods[p.UID] = p
	w.storePod(p)
	w.logf("controller creates %s", p.Name)
	return p.DeepCopy(), nil
}

func (w *fakeCluster) delete(uid types.UID) error {
	if err := w.spendUnless(w.refusesDeletions); err != nil {
		return err
	}
	if p := w.pods[uid]; p != nil && IsTracked(p, testOptions.TrackingFinalizer) {
		w.lose(p) // whatever becomes of the outcome that it's deleted for
	}
	w.markDeleted(uid)
	w.logf("controller deletes %s", uid)
	return nil
}

func (w *fakeCluster) markDeleted(uid types.UID) {
	if p := w.pods[uid]; p != nil && p.DeletionTimestamp == nil {
		p.DeletionTimestamp = &metav1.Time{Time: w.now}
		w.deleted.Insert(uid)
		w.storePod(p)
	}
}

// adopt makes a Pod that hasn't changed since the Job's, and tracked.
func (w *fakeCluster) adopt(uid types.UID, version string) (*corev1.Pod, error) {
	if err := w.spend(); err != nil {
		return nil, err
	}
	p := w.pods[uid]
	if p == nil || p.ResourceVersion != version {
		return nil, errConflict
	}
	p.Finalizers = []string{testOptions.TrackingFinalizer}
	p.OwnerReferences = []metav1.OwnerReference{*controllerRef(w.job)}
	w.storePod(p)
	w.logf("controller adopts %s", uid)
	return p.DeepCopy(), nil
}

// release makes a Pod that hasn't changed since nobody's, and untracked.
func (w *fakeCluster) release(uid types.UID, version string) error {
	if err := w.spendUnless(w.refusesPatches); err != nil {
		return err
	}
	p := w.pods[uid]
	if p == nil {
		return nil
	}
	if p.ResourceVersion != version {
		return errConflict
	}
	p.Finalizers, p.OwnerReferences = nil, nil
	w.storePod(p)
	w.logf("controller releases %s", uid)
	return nil
}

// untrack removes the finalizer; with a version given, only of that version.
func (w *fakeCluster) untrack(uid types.UID, version string) error {
	if err := w.spendUnless(w.refusesPatches); err != nil {
		return err
	}
	p := w.pods[uid]
	if p == nil {
		return nil
	}
	if version != "" {
		if version != p.ResourceVersion {
			return errConflict
		}
		w.deleted.Insert(uid) // it isn't counted, even if its DELETE never comes
	}
	p.Finalizers = slices.DeleteFunc(p.Finalizers, func(f string) bool { return f == testOptions.TrackingFinalizer })
	w.storePod(p)
	w.logf("controller untracks %s (%s)", uid, p.Status.Phase)
	return nil
}

func (w *fakeCluster) updateStatus(version string, write StatusWrite) (*batchv1.Job, error) {
	status := write.Status
	if err := w.spend(); err != nil {
		return nil, err
	}
	if version != w.job.ResourceVersion {
		return nil, errConflict
	}
	old := w.job.DeepCopy()
	w.job.Status = *status.DeepCopy()
	if write.Observed != nil {
		metav1.SetMetaDataAnnotation(&w.job.ObjectMeta, v1alpha1.AnnotationIndexesObserved, *write.Observed)
		w.logf("controller observes %q", *write.Observed)
	}
	if err := statusRules(old, w.job, w.elastic); err != nil {
		return nil, fmt.Errorf("the API server would refuse this status: %w", err)
	}
	if trueCondition(status.Conditions, batchv1.JobFailureTarget) != nil {
		// The Job has failed, and with it every Pod that was still running.
		w.failed.Insert(status.UncountedTerminatedPods.Failed...)
	}
	w.storeJob()
	w.logf("controller writes active=%d ready=%d terminating=%d succeeded=%d failed=%d uncounted=%d conditions=%v",
		status.Active, *status.Ready, *status.Terminating, status.Succeeded, status.Failed,
		len(status.UncountedTerminatedPods.Succeeded)+len(status.UncountedTerminatedPods.Failed), conditionTypes(status))
	return w.job.DeepCopy(), nil
}

func conditionTypes(s batchv1.JobStatus) (types []string) {
	for _, c := range s.Conditions {
		types = append(types, fmt.Sprintf("%s=%s", c.Type, c.Status))
	}
	return types
}
