package handsoff_test

import (
	"context"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/binaries"
	"github.com/jobferry/jobferry/e2e/rig/clock"
	"github.com/jobferry/jobferry/e2e/rig/policy"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager"
	"github.com/jobferry/jobferry/pkg/manager/usage"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// A backup tool brings a mirror back after its Job has finished: the work isn't done again.
func TestARestoredMirror(t *testing.T) {
	f := ferrytest.For(t)
	f.RunManager()
	f.Register("w1")
	f.LeaveWorker("w1")
	f.Submit("job", rigtest.RunFor(time.Second))
	f.HubJobUntil("job", rigtest.Complete)
	backup := f.MirrorUntil("w1", "job", rigtest.Complete)
	jobs := f.Cluster("w1").Client().BatchV1().Jobs(f.NS)
	if err := jobs.Delete(f.Context(), "job", metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationForeground)}); err != nil {
		t.Fatal(err)
	}
	f.MirrorGone("w1", "job")

	// Backup tools leave out what an API server makes.
	backup.ObjectMeta = metav1.ObjectMeta{Namespace: f.NS, Name: "job", Labels: backup.Labels, Annotations: backup.Annotations}
	backup.Spec.Selector, backup.Spec.ManualSelector, backup.Status = nil, nil, batchv1.JobStatus{}
	backup.Spec.Template.Labels = map[string]string{rig.LabelRunFor: rig.RunForever}
	f.Create(f.Cluster("w1"), backup)
	f.EventUntil("job", "MirrorStopped", "w1")
	f.MirrorGone("w1", "job")
	if done := f.HubJobUntil("job", rigtest.Complete); done.Status.Succeeded != 1 {
		t.Errorf("the hub's status is %+v", done.Status)
	}
}

// A worker's policy refuses to delete Jobs: a Job that is deleted leaves the hub in time all the
// same, its user is told, and its Pods end.
func TestAWorkerThatDeletesNothing(t *testing.T) {
	f := ferrytest.For(t)
	f.RunManager(func(o *manager.Options) { o.Timing.ReleaseTimeout = 2 * time.Second })
	f.Register("w1")
	f.LeaveWorker("w1")
	f.Submit("job", rigtest.RunForever(), func(j *batchv1.Job) { j.Spec.Template.Spec.TerminationGracePeriodSeconds = ptr.To[int64](0) })
	f.HubJobUntil("job", rigtest.Running(1))
	c := f.Cluster("w1")
	hasPolicy(t, f, c, policy.Policy{Name: "no-deletions"}.Refuses("DELETE", "nothing is deleted here"), func(ctx context.Context) (bool, error) {
		err := c.Client().BatchV1().Jobs(f.NS).Delete(ctx, "job", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		refused := apierrors.IsForbidden(err) || apierrors.IsInvalid(err)
		if refused || apierrors.IsNotFound(err) { // it's gone at the test's end
			err = nil
		}
		return refused, err
	})

	f.Delete("job", metav1.DeletePropagationBackground)
	f.HubJobGone("job")
	f.EventUntil("job", "NotReleased", "nothing is deleted here")
	f.MirrorUntil("w1", "job", func(j *batchv1.Job) bool { return ptr.Deref(j.Spec.Suspend, false) })
}

// A Job has the marks of a deployer: its mirror doesn't, so that the same deployer in the worker
// doesn't take it for its own.
func TestMarksOfADeployer(t *testing.T) {
	f := ferrytest.For(t)
	f.RunManager(func(o *manager.Options) { o.HubKeys = mirror.HubKeys{"example.com", "owner"} })
	f.Register("w1")
	f.LeaveWorker("w1")
	marks := map[string]string{
		"deployer.example.com/app": "x", "owner": "x", // by that option
		"app.kubernetes.io/instance": "app", "applyset.kubernetes.io/part-of": "applyset-x", "kustomize.toolkit.fluxcd.io/name": "app",
		"velero.io/restore-name": "x", "scaledjob.keda.sh/name": "x", "objectset.rio.cattle.io/hash": "x",
	}
	f.Submit("job", func(j *batchv1.Job) {
		j.Labels = map[string]string{"team": "a"}
		for key, value := range marks {
			j.Labels[key] = value
		}
	})
	f.HubJobUntil("job", rigtest.Complete)
	m := f.MirrorUntil("w1", "job", rigtest.Complete)
	for key := range marks {
		if value, has := m.Labels[key]; has {
			t.Errorf("the mirror has %s=%s", key, value)
		}
	}
	if m.Labels["team"] != "a" {
		t.Errorf("the mirror's labels are %v", m.Labels)
	}
}

// A Job for Windows goes where a node has it, and nowhere else.
func TestJobForWindows(t *testing.T) {
	f := ferrytest.For(t)
	f.RunManager()
	f.Register("w1", "w2")
	f.LeaveWorker("w2")
	onWindows := func(j *batchv1.Job) { j.Spec.Template.Spec.OS = &corev1.PodOS{Name: corev1.Windows} }
	f.Submit("job", onWindows)
	f.EventUntil("job", "Pending", "node(s) run another operating system")
	nodes, err := f.Cluster("w2").Client().CoreV1().Nodes().List(f.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	node := nodes.Items[0].Name
	f.Kubectl(f.Cluster("w2"), "", "label", "--overwrite", "node", node, "kubernetes.io/os=windows")
	defer f.Kubectl(f.Cluster("w2"), "", "label", "--overwrite", "node", node, "kubernetes.io/os=linux")
	if at := ferrytest.ClusterOf(f.HubJobUntil("job", rigtest.Complete)); at != "w2" {
		t.Errorf("it ran on %s", at)
	}
}

// The nodes that a Job selects are gone after the first of its Pods has run: the Job's user is
// told, and the Job goes on with its progress where such nodes are.
func TestNodesThatVanish(t *testing.T) {
	f := ferrytest.For(t)
	f.RunManager(func(o *manager.Options) { o.Timing.StuckNotice, o.Timing.StuckTimeout = time.Second, 2*time.Second })
	f.Register("w1", "w2")
	label := func(worker, change string) { f.Kubectl(f.Cluster(worker), "", "label", "--all", "nodes", change) }
	f.LeaveWorker("w1")
	f.LeaveWorker("w2")
	label("w1", "pool="+f.NS)
	f.Submit("job", rigtest.Indexed(10), rigtest.RunFor(time.Second), func(j *batchv1.Job) {
		j.Spec.Parallelism = ptr.To[int32](1)
		j.Spec.Template.Spec.NodeSelector = map[string]string{"pool": f.NS}
	})
	f.HubJobUntil("job", func(j *batchv1.Job) bool { return j.Status.Succeeded > 0 })
	label("w1", "pool-")
	f.EventUntil("job", "PodsWaiting", "didn't match Pod's node affinity/selector")
	label("w2", "pool="+f.NS)
	done := f.HubJobUntil("job", rigtest.Complete)
	if at := ferrytest.ClusterOf(done); at != "w2" || done.Status.Succeeded != 10 || done.Status.Failed != 0 {
		t.Errorf("ended on %s: %+v", at, done.Status)
	}
	f.EventUntil("job", "Moved", "from worker w1 to worker w2")
	label("w2", "pool-")
}

// Somebody in a worker removes the marks of a mirror that runs: it has them again, and nothing runs
// twice.
func TestRemovedMarks(t *testing.T) {
	f := ferrytest.For(t)
	process := f.StartManager()
	f.Register("w1", "w2")
	f.LeaveWorker("w1")
	f.LeaveWorker("w2")
	f.Submit("job", ferrytest.WithSelector("name in (w1,w2)"), rigtest.Indexed(2), rigtest.RunForever())
	f.HubJobUntil("job", rigtest.Running(2))
	worker := f.AssignedWorker("job")
	marked := func(j *batchv1.Job) bool {
		return j.Labels[v1alpha1.LabelOrigin] != "" && j.Annotations[v1alpha1.AnnotationHubUID] != ""
	}
	mirror := f.MirrorUntil(worker, "job", marked)
	for _, remove := range []string{
		`{"metadata":{"labels":{"jobferry.dev/origin":null}}}`,
		`{"metadata":{"annotations":{"jobferry.dev/hub-uid":null}}}`,
		`{"metadata":{"labels":{"jobferry.dev/origin":null},"annotations":{"jobferry.dev/hub-uid":null}}}`,
	} {
		f.PatchMirror(worker, "job", remove)
		if is := f.MirrorUntil(worker, "job", marked); is.UID != mirror.UID {
			t.Fatalf("after %s it's another mirror", remove)
		}
	}
	f.EventUntil("job", "Drift", "is there again")

	// The next manager knows the mirror by the hub Job's account.
	pods := f.Pods(f.Cluster(worker))
	f.EndPod(worker, pods[0].Name)
	f.HubJobUntil("job", func(j *batchv1.Job) bool { return len(usage.Read(j)) > 0 })
	process.Kill()
	f.PatchMirror(worker, "job", `{"metadata":{"labels":{"jobferry.dev/origin":null},"annotations":{"jobferry.dev/hub-uid":null}}}`)
	f.StartManager()
	if is := f.MirrorUntil(worker, "job", marked); is.UID != mirror.UID {
		t.Fatal("after a restart it's another mirror")
	}
	f.EndPod(worker, pods[1].Name)
	if done := f.HubJobUntil("job", rigtest.Complete); done.Status.Failed != 0 || ferrytest.ClusterOf(done) != worker {
		t.Errorf("ended on %s: %+v", ferrytest.ClusterOf(done), done.Status)
	}
	if f.HasEvent("job", "Moved", "") {
		t.Error("it moved")
	}
}

// A worker's policy removes the marks of mirrors. One that is created there is taken back; one that
// runs there is, too, when it's changed. Both go on in the other worker, and nothing runs twice.
func TestAPolicyRemovesMarks(t *testing.T) {
	f := ferrytest.For(t)
	f.RunManager()
	f.Register("w1", "w2")
	f.LeaveWorker("w1")
	f.LeaveWorker("w2")
	briefly := func(j *batchv1.Job) { j.Spec.Template.Spec.TerminationGracePeriodSeconds = ptr.To[int64](1) }
	f.Submit("runs", ferrytest.WithSelector("name=w1"), rigtest.RunForever(), briefly)
	f.HubJobUntil("runs", rigtest.Running(1))
	w1 := f.Cluster("w1")
	hasPolicy(t, f, w1, policy.Policy{Name: "no-marks"}.Strips("labels "+v1alpha1.LabelOrigin),
		ofAJob(w1, func(j *batchv1.Job) bool { return j.Labels[v1alpha1.LabelOrigin] == "" }))

	onlyIn := func(name string) {
		t.Helper()
		f.EventUntil(name, "MirrorRefused", "removes jobferry.dev/origin")
		f.MirrorGone("w1", name)
		f.HubJobUntil(name, func(j *batchv1.Job) bool { return ferrytest.ClusterOf(j) == "w2" && rigtest.Running(1)(j) })
	}
	f.Submit("new", ferrytest.WithSelector("name in (w1,w2)"), preferring("w1"), rigtest.RunForever(), briefly)
	onlyIn("new")
	f.Patch("runs", `{"metadata":{"annotations":{"jobferry.dev/cluster-selector":"name in (w1,w2)"}}}`)
	f.PatchMirror("w1", "runs", `{"metadata":{"annotations":{"example.org/touched":"true"}}}`)
	onlyIn("runs")
	for _, pod := range f.Pods(w1) {
		t.Errorf("Pod %s is in w1", pod.Name)
	}
}

// A worker's policy has Jobs removed as soon as they have ended, and no manager is there then: the
// mirror waits for the next one, and the Job runs once.
func TestAPolicySetsATTL(t *testing.T) {
	f := ferrytest.For(t)
	m := f.RunManager()
	f.Register("w1")
	f.LeaveWorker("w1")
	w1 := f.Cluster("w1")
	hasPolicy(t, f, w1, policy.Policy{Name: "a-ttl"}.Mutates("Object{spec: Object.spec{ttlSecondsAfterFinished: 0}}"),
		ofAJob(w1, func(j *batchv1.Job) bool { return j.Spec.TTLSecondsAfterFinished != nil }))
	f.Submit("job", ferrytest.OnWorker("w1"), rigtest.RunForever())
	f.HubJobUntil("job", rigtest.Running(1))
	f.EventUntil("job", "Drift", "ttlSecondsAfterFinished")
	first := f.MirrorUntil("w1", "job", mirror.AwaitsEnd)
	m.Stop()
	for _, pod := range f.Pods(f.Cluster("w1")) {
		f.EndPod("w1", pod.Name)
	}
	last := f.MirrorUntil("w1", "job", func(j *batchv1.Job) bool { return j.DeletionTimestamp != nil })
	if last.UID != first.UID || !rigtest.Complete(last) {
		t.Errorf("%s after %s, %+v", last.UID, first.UID, last.Status)
	}
	f.RunManager()
	if done := f.HubJobUntil("job", rigtest.Complete); done.Status.Succeeded != 1 {
		t.Errorf("the hub's status is %+v", done.Status)
	}
	f.MirrorGone("w1", "job")
}

// hasPolicy has a worker's API server follow a policy until the test's end: the next one has the
// same worker.
func hasPolicy(t *testing.T, f *ferrytest.Ferry, worker *rig.Cluster, text string, isFollowed func(context.Context) (bool, error)) {
	t.Helper()
	until := func(ctx context.Context, want bool) error {
		return wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			is, err := isFollowed(ctx)
			return err == nil && is == want, nil
		})
	}
	f.Kubectl(worker, text, "apply", "-f", "-")
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // the test's own has ended
		defer cancel()
		if _, err := worker.Kubectl(ctx, text, "delete", "-f", "-"); err != nil {
			t.Error(err)
		}
		if err := until(ctx, false); err != nil {
			t.Error(err)
		}
	})
	if err := until(f.Context(), true); err != nil {
		t.Fatal(err)
	}
}

// ofAJob says whether a Job that's created in a worker follows its policy.
func ofAJob(worker *rig.Cluster, follows func(*batchv1.Job) bool) func(context.Context) (bool, error) {
	probe := rigtest.Job(metav1.NamespaceDefault, "probe", func(j *batchv1.Job) { j.Labels = map[string]string{v1alpha1.LabelOrigin: "probe"} })
	return func(ctx context.Context) (bool, error) {
		answer, err := worker.Client().BatchV1().Jobs(probe.Namespace).Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err == nil && follows(answer), err
	}
}

// preferring has a Job go to one worker if it can.
func preferring(worker string) rigtest.Option {
	return func(j *batchv1.Job) { j.Annotations[v1alpha1.AnnotationClusterPreference] = "name=" + worker + "; *" }
}

// A worker's clocks are off. A Job's times on the hub are as if they weren't: its TTL counts from
// its end, and it has run as long as it did.
func TestClocksOfAWorker(t *testing.T) {
	if !clock.Supported {
		t.Skip("clocks can't be set here")
	}
	f := ferrytest.For(t)
	f.RunManager()
	worker := f.Cluster("clocks")
	set := func(offset time.Duration) {
		t.Helper()
		for _, name := range []string{binaries.APIServer, binaries.ControllerManager, binaries.Kwok} {
			c := worker.Component(name)
			var err error
			if wait.PollUntilContextTimeout(context.Background(), 100*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
				err = c.SetClock(offset) // it fails while the process asks for the time
				return err == nil, nil
			}) != nil {
				t.Fatal(err)
			}
			if name != binaries.APIServer { // what was due by another clock isn't waited for
				if err := c.Restart(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	t.Cleanup(func() { set(0) })
	f.Register("clocks")
	f.LeaveWorker("clocks")
	for name, offset := range map[string]time.Duration{"behind": -5 * time.Minute, "ahead": 90 * time.Minute} {
		set(offset)
		f.WorkerUntil("clocks", func(w *v1alpha1.WorkerCluster) bool {
			c := meta.FindStatusCondition(w.Status.Conditions, v1alpha1.ConditionClockAgrees)
			return c != nil && strings.Contains(c.Message, strings.TrimPrefix(offset.Round(time.Minute).String(), "-"))
		})
		const ran = 4 * time.Second
		f.Submit(name, rigtest.RunFor(ran), ferrytest.OnWorker("clocks"))
		done := f.HubJobUntil(name, rigtest.Complete)
		now, start, end := time.Now(), done.Status.StartTime, done.Status.CompletionTime
		if start.Before(&done.CreationTimestamp) || end.Sub(start.Time) < ran-2*time.Second || end.After(now) || now.Sub(end.Time) > ran {
			t.Errorf("%s: created %s, started %s, completed %s, now %s", name, done.CreationTimestamp, start, end, now)
		}
	}
	set(0)
	f.WorkerUntil("clocks", func(w *v1alpha1.WorkerCluster) bool {
		return meta.IsStatusConditionTrue(w.Status.Conditions, v1alpha1.ConditionClockAgrees)
	})
}
