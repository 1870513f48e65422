package worker

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/util/costtest"
	"github.com/jobferry/jobferry/pkg/util/queue"
	"github.com/jobferry/jobferry/pkg/util/text"
	"github.com/jobferry/jobferry/pkg/util/turns"
	"github.com/jobferry/jobferry/pkg/util/wake"
)

// Of Jobs of which no Pods are to be made, and of the Pods of one large template, little is held.
func TestLargeObjectsOfATenantTakeLittle(t *testing.T) {
	const many, objects = 20_000, 20
	sidecars := make([]corev1.Container, many)
	var finalizers []string
	labels := map[string]string{}
	for i := range many {
		sidecars[i] = corev1.Container{Name: fmt.Sprint(i), RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)}
		finalizers = append(finalizers, fmt.Sprint("a/", i))
		labels[fmt.Sprint(i)] = ""
	}
	large := func(j *batchv1.Job) { j.Spec.Template.Spec.InitContainers = sidecars }
	for name, make := range map[string]func() any{
		"a Job of another controller": func() any {
			return slimJob(t, aJob(large, func(j *batchv1.Job) { j.Spec.ManagedBy = ptr.To("example.com/other") }).DeepCopy(), DefaultOptions())
		},
		"an unfinished Job": func() any { return slimJob(t, aJob(large).DeepCopy(), DefaultOptions()) },
		"a Pod of many owners": func() any {
			return slimmed(t, aPod("p", func(p *corev1.Pod) {
				for i := range many {
					p.OwnerReferences = append(p.OwnerReferences, metav1.OwnerReference{Kind: "Job", Name: fmt.Sprint("other-", i), UID: types.UID(fmt.Sprint(i))})
				}
				for _, key := range readAnnotations {
					metav1.SetMetaDataAnnotation(&p.ObjectMeta, key, strings.Repeat("1", 80<<10))
				}
			}).DeepCopy(), DefaultOptions())
		},
		"a finished Job": func() any {
			return slimJob(t, aJob(large, func(j *batchv1.Job) {
				j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}
			}).DeepCopy(), DefaultOptions())
		},
		"a Pod of many sidecars that wait": func() any {
			return slimmed(t, aPod("p", func(p *corev1.Pod) {
				p.Spec.InitContainers = sidecars
				p.Status.InitContainerStatuses = statusesOf(many, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}})
				p.Status.ContainerStatuses = p.Status.InitContainerStatuses
			}).DeepCopy(), DefaultOptions())
		},
		"a Pod of many containers that were never known to run": func() any {
			return slimmed(t, aPod("p", func(p *corev1.Pod) {
				p.Status.ContainerStatuses = statusesOf(many, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137}})
			}).DeepCopy(), DefaultOptions())
		},
		"a Pod": func() any {
			return slimmed(t, aPod("p", func(p *corev1.Pod) {
				p.Labels, p.Spec.InitContainers = labels, sidecars
				p.Finalizers = append(p.Finalizers, finalizers...)
			}).DeepCopy(), DefaultOptions())
		},
	} {
		before := costtest.Heap()
		held := []any{}
		for range objects {
			held = append(held, make())
		}
		if each := (costtest.Heap() - before) / objects; each > 32<<10 {
			t.Errorf("%s takes %d KiB", name, each>>10)
		}
		runtime.KeepAlive(held)
	}
}

// statusesOf are those of containers that are all in a state.
func statusesOf(n int, state corev1.ContainerState) []corev1.ContainerStatus {
	all := make([]corev1.ContainerStatus, n)
	for i := range all {
		all[i] = corev1.ContainerStatus{Name: fmt.Sprint(i), State: state}
	}
	return all
}

// TestSlimStatuses: what is told of each container stays.
func TestSlimStatuses(t *testing.T) {
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3}}
	pod := aPod("p", func(p *corev1.Pod) {
		p.Status.ContainerStatuses = append(statusesOf(50, ended), statusesOf(2, corev1.ContainerState{})...)
		p.Status.InitContainerStatuses = statusesOf(4, corev1.ContainerState{})
		p.Status.InitContainerStatuses[3].RestartCount = 2
		for _, name := range []string{"1", "2", "3"} {
			p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{Name: name, RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)})
		}
	})
	for range 2 {
		pod = slimmed(t, pod, DefaultOptions())
		var init, sidecars []string
		for _, s := range pod.Status.InitContainerStatuses {
			init = append(init, s.Name)
		}
		for _, c := range pod.Spec.InitContainers {
			sidecars = append(sidecars, c.Name)
		}
		if len(pod.Status.ContainerStatuses) != 51 || fmt.Sprint(init, sidecars) != "[0 1 3] [1 3]" {
			t.Errorf("%d containers, of the init containers %v, sidecars %v", len(pod.Status.ContainerStatuses), init, sidecars)
		}
	}
}

// However many containers a Pod has, what decides is held: each exit code, all restarts, and when
// the last one ended.
func TestSlimStatusesOfManyContainers(t *testing.T) {
	ended := func(code int32, second int64) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: metav1.Unix(second, 0)}}
	}
	pod := aPod("p", func(p *corev1.Pod) {
		p.Status.ContainerStatuses = append(statusesOf(200, ended(0, 1)), statusesOf(1, ended(42, 2))...)
		p.Status.ContainerStatuses[150].State = ended(0, 7)
		p.Status.InitContainerStatuses = statusesOf(200, corev1.ContainerState{})
		for i := range p.Status.InitContainerStatuses {
			p.Status.InitContainerStatuses[i].RestartCount = 1
		}
	})
	for range 2 {
		pod = slimmed(t, pod, DefaultOptions())
		codes, last, restarts := sets.Set[int32]{}, metav1.Time{}, int32(0)
		for _, s := range pod.Status.ContainerStatuses {
			codes.Insert(s.State.Terminated.ExitCode)
			if last.Before(&s.State.Terminated.FinishedAt) {
				last = s.State.Terminated.FinishedAt
			}
		}
		for _, s := range pod.Status.InitContainerStatuses {
			restarts += s.RestartCount
		}
		if !codes.Equal(sets.New[int32](0, 42)) || last.Unix() != 7 || restarts != 200 {
			t.Errorf("exit codes %v, the last at %v, %d restarts", codes, last, restarts)
		}
	}
}

// A Job whose Pods have too many labels to be held runs as any other, also with a selector of its
// own. It adopts no such Pod.
func TestPodsOfVeryManyLabels(t *testing.T) {
	many := map[string]string{"job": "job-uid"}
	for i := range 1000 {
		many[fmt.Sprint(i)] = ""
	}
	c := newCluster(t, Options{}, aJob(func(j *batchv1.Job) { j.Spec.Template.Labels = many }),
		aPod("bare", func(p *corev1.Pod) { p.OwnerReferences, p.Labels = nil, many }))
	for range 3 {
		c.mustSync()
		for _, p := range c.pods() {
			if p.Name != "bare" && p.Status.Phase != corev1.PodSucceeded {
				c.end(&p, 0)
			}
		}
	}
	c.mustSync()
	if c.count("create") != 3 || finished(c.job()) != batchv1.JobComplete {
		t.Errorf("%d Pods created, status %+v", c.count("create"), c.job().Status)
	}
	for _, p := range c.pods() {
		if p.Name == "bare" && len(p.OwnerReferences) > 0 {
			t.Error("the bare Pod was adopted")
		}
	}
}

// A Job of very many indexes isn't large by the lists of those that are its own, or have ended.
func TestListsOfIndexesDontWeigh(t *testing.T) {
	long := strings.Repeat("1,3,", 50_000)
	job := slimJob(t, aJob(func(j *batchv1.Job) {
		j.Status.CompletedIndexes = long
		j.Annotations = map[string]string{v1alpha1.AnnotationIndexes: long[:16<<10], v1alpha1.AnnotationIndexesObserved: long[:16<<10]}
	}), DefaultOptions())
	if isOutline(job) || job.Annotations[v1alpha1.AnnotationIndexes] != long[:16<<10] {
		t.Error("an outline of it is held")
	}
}

// Anybody may give a Job lists of indexes of 256 KiB, and a hub conditions of any size.
func TestLongListsOfOthersWeigh(t *testing.T) {
	for name, is := range map[string]func(*batchv1.Job){
		"indexes": func(j *batchv1.Job) {
			j.Annotations = map[string]string{v1alpha1.AnnotationIndexes: strings.Repeat("1,3,", 50_000)}
		},
		"conditions": func(j *batchv1.Job) { j.Status.Conditions = make([]batchv1.JobCondition, 10_000) },
	} {
		if !isOutline(slimJob(t, aJob(is), DefaultOptions())) {
			t.Errorf("%s: all of the Job is held", name)
		}
	}
}

func isLarge(j *batchv1.Job) {
	for i := range 2000 {
		j.Spec.Template.Spec.Containers[0].Env = append(j.Spec.Template.Spec.Containers[0].Env, corev1.EnvVar{Name: fmt.Sprint("E", i)})
	}
}

// syncs another large Job, until the end is called.
func (c *cluster) syncsAnother() (end func()) {
	c.t.Helper()
	other := types.NamespacedName{Namespace: "others", Name: "large"}
	if !c.jobs.large.Take(other) {
		c.t.Fatal("a large Job is synced already")
	}
	return func() { c.jobs.large.Ended(other) }
}

// A large Job of which an outline is held runs as any other, one at a time, and in turn.
func TestALargeJobRuns(t *testing.T) {
	c := newCluster(t, Options{}, aJob(isLarge))
	end := c.syncsAnother()
	if c.mustSync(); c.count("create") != 0 || len(c.turns) != 0 {
		t.Errorf("beside another large Job: %d Pods, enqueued %v", c.count("create"), c.turns)
	}
	if end(); !slices.Equal(c.turns, []types.NamespacedName{jobKey}) {
		t.Errorf("after the other one: enqueued %v", c.turns)
	}
	for range 3 {
		c.mustSync()
		if known := c.jobs.memory.jobs[jobKey]; known.written != nil {
			t.Error("it's held as it was written")
		}
		for _, p := range c.pods() {
			if p.Status.Phase != corev1.PodSucceeded {
				c.end(&p, 0)
			}
		}
	}
	c.mustSync()
	if c.count("create") != 3 || finished(c.job()) != batchv1.JobComplete {
		t.Errorf("%d Pods created, status %+v", c.count("create"), c.job().Status)
	}
}

// A large Job that is to read needs two turns, which others want, too: it keeps the one until it
// has the other.
func TestALargeJobKeepsItsTurnToRead(t *testing.T) {
	c := newCluster(t, Options{}, aJob(isLarge))
	other := types.NamespacedName{Namespace: "other", Name: "job"}
	end := c.syncsAnother()
	for _, turn := range []*turns.Turn{c.jobs.metadata.turn, c.jobs.templates} {
		turn.Take(jobKey)
		c.mustSync()
		if turn.Take(other) {
			t.Error("it has given its turn away")
		}
	}
	end()
	c.mustSync()
	for _, turn := range []*turns.Turn{c.jobs.metadata.turn, c.jobs.templates} {
		if !turn.Take(other) {
			t.Error("it keeps its turn")
		}
	}
}

// A large Job is stopped whoever else has large ones that take long: its hub moves it soon.
func TestALargeFencedJobIsStopped(t *testing.T) {
	c := newCluster(t, Options{}, aJob(isLarge, of("hub")))
	h := withHubs(c, 5*time.Minute)
	h.renew("hub", 15*time.Minute)
	c.mustSync()
	h.silence(10 * time.Minute)
	defer c.syncsAnother()()
	c.refuse = func(verb string, _ client.Object) error {
		if verb == "delete" {
			return errors.New("the API server restarts")
		}
		return nil
	}
	if _, err := c.sync(); err == nil || !v1alpha1.IsFenced(c.job()) {
		t.Fatalf("it isn't marked, or its Pods are gone: %v", err)
	}
	h.renew("hub", 15*time.Minute) // the mark counts, until the hub takes it away
	c.refuse = nil
	c.mustSync()
	if n := len(c.pods()); n > 0 {
		t.Errorf("%d Pods are left", n)
	}
}

// Fenced Jobs come first also when they had to wait for a turn. Who only says that a Job is fenced
// has no part in that.
func TestLargeFencedJobsComeFirst(t *testing.T) {
	q := queue.New("large-fenced", nil)
	defer q.ShutDown()
	turn, first := turnIn(q, fencedFirst), types.NamespacedName{Name: "first"}
	turn.Take(first)
	turn.Take(jobKey)
	for i := range 3 {
		q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: fmt.Sprint(i)}})
	}
	turn.Ended(first)
	if next, _ := q.Get(); next.NamespacedName != jobKey {
		t.Errorf("first comes %s", next.Name)
	}
	c := newCluster(t, Options{})
	said := aJob(func(j *batchv1.Job) { j.Annotations = map[string]string{v1alpha1.AnnotationFenced: ""} })
	if c.jobs.turnOf(said) != c.jobs.large {
		t.Error("a Job without a hub has the turn of those that are fenced")
	}
}

// A sync of very many Pods, each of which takes long, leaves others their turn.
func TestALongSyncEnds(t *testing.T) {
	for verb, objects := range map[string][]client.Object{
		"create": {aJob(func(j *batchv1.Job) { j.Spec.Parallelism, j.Spec.Completions = ptr.To[int32](100), ptr.To[int32](100) })},
		"patch": {
			aJob(), aPod("a", func(p *corev1.Pod) { p.OwnerReferences = nil }), aPod("b", func(p *corev1.Pod) { p.OwnerReferences = nil }),
		},
	} {
		c := newCluster(t, Options{}, objects...)
		c.refuse = func(sent string, _ client.Object) error {
			if sent == verb {
				c.clock.Step(syncAtMost + time.Second)
			}
			return nil
		}
		if got := c.mustSync(); got.RequeueAfter != wake.AtOnce || c.count(verb) != 1 {
			t.Errorf("%s: again after %s, %d sent", verb, got.RequeueAfter, c.count(verb))
		}
		if others := c.count("create"); verb == "patch" && others != 0 {
			t.Errorf("%d Pods created before all were adopted", others)
		}
		c.refuse = nil
		for range 3 {
			c.mustSync()
		}
		if want := map[string]int{"create": 100, "patch": 2}[verb]; c.count(verb) != want || len(c.pods()) != want {
			t.Errorf("%s: %d sent in the end, %d Pods", verb, c.count(verb), len(c.pods()))
		}
	}
}

// A tenant has very many Pods that his Job is to release: others have their turn meanwhile.
func TestALongReleaseEnds(t *testing.T) {
	other := func(p *corev1.Pod) { p.Labels["job"] = "other" }
	c := newCluster(t, Options{}, aJob(), aPod("a", other), aPod("b", other))
	c.refuse = func(sent string, _ client.Object) error {
		if sent == "patch" {
			c.clock.Step(syncAtMost + time.Second)
		}
		return nil
	}
	if got := c.mustSync(); got.RequeueAfter != wake.AtOnce || c.count("patch") != 1 || c.count("create") != 0 {
		t.Errorf("again after %s, %d released, %d created", got.RequeueAfter, c.count("patch"), c.count("create"))
	}
	c.refuse = nil
	if c.mustSync(); c.count("patch") != 2 || c.count("create") == 0 {
		t.Errorf("%d released in the end, %d created", c.count("patch"), c.count("create"))
	}
}

// Pods that can't be released, which takes long to find out, don't keep a Job from being looked at.
func TestPodsThatCantBeReleased(t *testing.T) {
	other := func(p *corev1.Pod) { p.Labels["job"] = "other" }
	c := newCluster(t, Options{}, aJob(), aPod("a", other), aPod("b", other))
	c.refuse = func(sent string, _ client.Object) error {
		if sent != "patch" {
			return nil
		}
		c.clock.Step(syncAtMost + time.Second)
		return apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Pod").GroupKind(), "a", nil)
	}
	if c.mustSync(); c.count("status") == 0 {
		t.Error("nothing is decided")
	}
}

// A refusal may have any length, such as that of a Pod, which may name everything in it. Nothing
// that is said of it has.
func TestLongRefusalsAreCut(t *testing.T) {
	long := apierrors.NewForbidden(corev1.Resource("pods"), "x", errors.New(strings.Repeat("no! ", 100_000)))
	suspended := func(j *batchv1.Job) { j.Spec.Suspend = ptr.To(true) }
	for name, row := range map[string]struct {
		verb string
		job  func(*batchv1.Job)
	}{
		"a new Pod":   {"create", func(*batchv1.Job) {}},
		"a Workload":  {"create", gang(0)},
		"a deletion":  {"delete", suspended},
		"a finalizer": {"patch", suspended},
		"a status":    {"status", suspended},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, Options{}, aJob(row.job), aPod("a"))
			c.refuse = func(verb string, _ client.Object) error {
				if verb == row.verb {
					return long
				}
				return nil
			}
			_, err := c.sync()
			if !apierrors.IsForbidden(err) || len(err.Error()) > 2*text.MaxMessage {
				t.Errorf("the error has %d bytes: %.100v", len(err.Error()), err)
			}
			for range len(c.events.Events) {
				if e := <-c.events.Events; len(e) > 2*text.MaxMessage {
					t.Errorf("an event has %d bytes: %.100s", len(e), e)
				}
			}
		})
	}
}

// Jobs whose fence has closed come before all that wait.
func TestFencedJobsComeFirst(t *testing.T) {
	q := queue.New("fenced", nil)
	defer q.ShutDown()
	for i := range 3 {
		q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: fmt.Sprint(i)}})
	}
	c := newCluster(t, Options{}, aJob(func(j *batchv1.Job) { j.Labels = map[string]string{v1alpha1.LabelOrigin: "hub"} }))
	if err := DefaultOptions().enqueueFenced(t.Context(), c.api, sets.New[v1alpha1.Origin]("hub"), q); err != nil {
		t.Fatal(err)
	}
	if first, _ := q.Get(); first.NamespacedName != jobKey {
		t.Errorf("first comes %s", first.Name)
	}
}
