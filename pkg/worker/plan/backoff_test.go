package plan

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

func TestBackoffDelay(t *testing.T) {
	want := []time.Duration{0, 10, 20, 40, 80, 160, 320, 360, 360}
	for failures, seconds := range want {
		b := Backoff{Failures: failures, Last: noon}
		if got := b.remaining(noon, testOptions); got != seconds*time.Second {
			t.Errorf("after %d failures: %v, want %ds", failures, got, seconds)
		}
	}
	if got := (Backoff{Failures: 1, Last: noon}).remaining(noon.Add(time.Hour), testOptions); got != 0 {
		t.Errorf("an hour later: %v", got)
	}
}

func TestBackoffRecord(t *testing.T) {
	two := Backoff{Failures: 2, Last: noon}
	for _, row := range []struct {
		name string
		pods []*corev1.Pod
		want Backoff
	}{
		{"nothing new", nil, two},
		{"one more failure", []*corev1.Pod{aPod("a", exited(1, 7))}, Backoff{3, at(7).Time}},
		{"the latest of several counts", []*corev1.Pod{aPod("a", exited(1, 9)), aPod("b", exited(1, 7))}, Backoff{4, at(9).Time}},
		{"a success resets", []*corev1.Pod{aPod("a", exited(0, 7))}, Backoff{}},
		{"a failure after the success", []*corev1.Pod{aPod("a", exited(0, 7)), aPod("b", exited(1, 5)), aPod("c", exited(1, 9))}, Backoff{1, at(9).Time}},
		{"Pods that are counted already", []*corev1.Pod{aPod("a", untracked, exited(1, 9))}, two},
		{"a deleted Pod ends when it was asked to", []*corev1.Pod{aPod("a", running, deletedAt(30), func(p *corev1.Pod) { p.DeletionGracePeriodSeconds = ptr.To[int64](20) })}, Backoff{3, at(10).Time}},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := snap(aJob(workQueue(1)), 60, row.pods...)
			s.Backoff = &two
			if got := Compute(s, testOptions).Backoff; got.Failures != row.want.Failures || !got.Last.Equal(row.want.Last) {
				t.Errorf("got %+v, want %+v", got, row.want)
			}
		})
	}
}

// A controller that was just started finds the back-off in the Pods.
func TestBackoffOutlivesTheController(t *testing.T) {
	s := snap(aJob(workQueue(1)), 12, aPod("a", untracked, exited(1, 0)), aPod("b", untracked, exited(1, 10)))
	p := Compute(s, testOptions)
	if p.Backoff.Failures != 2 || len(p.Create) != 0 {
		t.Errorf("back-off %+v, %d Pods to create", p.Backoff, len(p.Create))
	}
}

func TestEndTimeSources(t *testing.T) {
	sidecar := func(second int) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "side", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)}, {Name: "init"}}
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{containerExit("side", 0, second), containerExit("init", 0, 99)}
		}
	}
	notReady := func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: *at(4)}}
	}
	for _, row := range []struct {
		name string
		pod  *corev1.Pod
		want int
	}{
		{"its containers", aPod("p", exited(1, 7), notReady), 7},
		{"its sidecars, not its init containers", aPod("p", exited(1, 7), sidecar(8)), 8},
		{"a sidecar that still runs leaves it to the next source", aPod("p", exited(1, 7), func(p *corev1.Pod) {
			sidecar(8)(p)
			p.Status.InitContainerStatuses[0].State.Terminated = nil
		}, notReady), 4},
		{"when it stopped being ready", aPod("p", notReady, deletedAt(6)), 4},
		{"when its deletion began", aPod("p", deletedAt(6)), 6},
		{"its creation", aPod("p", created(2)), 2},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := endTime(row.pod); !got.Equal(at(row.want).Time) {
				t.Errorf("ended at %v, want noon+%ds", got, row.want)
			}
		})
	}
}

func TestBackoffPerIndex(t *testing.T) {
	for _, row := range []struct {
		name   string
		pods   []*corev1.Pod
		second int
		create []int
		wake   time.Duration
	}{
		{"first failure", []*corev1.Pod{aPod("a", index(0), failures(0), exited(1, 0))}, 4, nil, 6 * time.Second},
		{"second failure", []*corev1.Pod{aPod("a", index(0), failures(1), exited(1, 0))}, 4, nil, 16 * time.Second},
		{"its time has come", []*corev1.Pod{aPod("a", index(0), failures(1), exited(1, 0))}, 20, []int{0}, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := Compute(snap(aJob(sized(1, 2), indexLimit(5)), row.second, row.pods...), testOptions)
			if len(p.Create) != len(row.create) || len(p.Create) > 0 && CompletionIndex(p.Create[0]()) != row.create[0] {
				t.Errorf("creates %d Pods", len(p.Create))
			}
			if p.Wake != row.wake {
				t.Errorf("wakes after %v, want %v", p.Wake, row.wake)
			}
		})
	}
}

// One index's back-off delays no other index that has a place.
func TestBackoffPerIndexIsIndependent(t *testing.T) {
	p := Compute(snap(aJob(sized(2, 5), indexLimit(5)), 1, aPod("a", index(0), failures(0), exited(1, 0))), testOptions)
	if len(p.Create) != 1 || CompletionIndex(p.Create[0]()) != 1 {
		t.Errorf("creates %d Pods", len(p.Create))
	}
}
