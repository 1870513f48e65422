package report

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/util/text"
)

func TestOfCleans(t *testing.T) {
	at := metav1.NewTime(time.Unix(1_790_000_000, 500).UTC())
	far := metav1.NewTime(time.Unix(math.MaxInt32*1000, 0))
	long := strings.Repeat("x ", 10_000)
	rows := map[string]struct {
		from corev1.PodStatus
		ok   func(*corev1.PodStatus) bool
	}{
		"addresses": {corev1.PodStatus{PodIP: "10.0.0.1", PodIPs: []corev1.PodIP{{IP: "10.0.0.1"}}, HostIP: "10.0.0.2", HostIPs: []corev1.HostIP{{IP: "10.0.0.2"}}},
			func(s *corev1.PodStatus) bool { return s.PodIP+s.HostIP == "" && s.PodIPs == nil && s.HostIPs == nil }},
		"nominated node":     {corev1.PodStatus{NominatedNodeName: "n", QOSClass: "x"}, func(s *corev1.PodStatus) bool { return s.NominatedNodeName == "" && s.QOSClass == "" }},
		"a phase that isn't": {corev1.PodStatus{Phase: "Exploded"}, func(s *corev1.PodStatus) bool { return s.Phase == corev1.PodUnknown }},
		"no phase":           {corev1.PodStatus{}, func(s *corev1.PodStatus) bool { return s.Phase == corev1.PodPending }},
		"texts": {corev1.PodStatus{Message: "a\x1b[31m\n" + long, Reason: "no reason\n"},
			func(s *corev1.PodStatus) bool {
				return len(s.Message) <= text.MaxMessage && !strings.ContainsAny(s.Message, "\x1b\n") && s.Reason == "noreason"
			}},
		"conditions": {corev1.PodStatus{Conditions: []corev1.PodCondition{
			{Type: "no type", Status: "True"}, {Type: "a", Status: "maybe"}, {Type: "b", Status: "True", LastTransitionTime: far}, {Type: "b", Status: "False"},
		}}, func(s *corev1.PodStatus) bool {
			return len(s.Conditions) == 1 && s.Conditions[0].Status == corev1.ConditionTrue && s.Conditions[0].LastTransitionTime.IsZero()
		}},
		"many that aren't": {corev1.PodStatus{Conditions: many(300_000, func(int) corev1.PodCondition {
			return corev1.PodCondition{Type: "no type", Status: "True"}
		}), ContainerStatuses: many(300_000, func(int) corev1.ContainerStatus { return corev1.ContainerStatus{Name: "../x"} })}, func(s *corev1.PodStatus) bool {
			return len(s.Conditions)+len(s.ContainerStatuses) == 0
		}},
		"many conditions": {corev1.PodStatus{Conditions: many(1000, func(i int) corev1.PodCondition {
			return corev1.PodCondition{Type: corev1.PodConditionType(strings.Repeat("a", i%60+1)), Status: "True"}
		})}, func(s *corev1.PodStatus) bool { return len(s.Conditions) == maxConditions }},
		"containers": {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{
			{Name: "../x"}, {Name: "a", RestartCount: -1, ContainerID: "rm -rf", Image: long}, {Name: "a"},
		}}, func(s *corev1.PodStatus) bool {
			return len(s.ContainerStatuses) == 1 && s.ContainerStatuses[0].RestartCount == 0 && s.ContainerStatuses[0].ContainerID == "" && len(s.ContainerStatuses[0].Image) <= maxImage
		}},
		"many containers": {corev1.PodStatus{InitContainerStatuses: many(1000, func(i int) corev1.ContainerStatus {
			return corev1.ContainerStatus{Name: strings.Repeat("a", i%60+1)}
		})}, func(s *corev1.PodStatus) bool { return len(s.InitContainerStatuses) == maxContainers }},
		"all states": {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "a", State: corev1.ContainerState{
			Running: &corev1.ContainerStateRunning{StartedAt: at}, Waiting: &corev1.ContainerStateWaiting{}, Terminated: &corev1.ContainerStateTerminated{Message: long},
		}}}}, func(s *corev1.PodStatus) bool {
			state := s.ContainerStatuses[0].State
			return state.Running == nil && state.Waiting == nil && len(state.Terminated.Message) <= text.MaxMessage
		}},
		"whole seconds": {corev1.PodStatus{StartTime: &at}, func(s *corev1.PodStatus) bool {
			return s.StartTime.Nanosecond() == 0 && s.StartTime.Unix() == at.Unix()
		}},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			clean := Of(&corev1.Pod{Status: row.from})
			if !row.ok(&clean.Status) {
				t.Errorf("cleaned: %+v", clean.Status)
			}
			if again := Of(clean); !cmp.Equal(clean, again) {
				t.Errorf("cleaned again, it differs: %s", cmp.Diff(clean, again))
			}
		})
	}
}

func many[T any](n int, one func(int) T) (all []T) {
	for i := range n {
		all = append(all, one(i))
	}
	return all
}

// Of a Pod's metadata, a report has the numbers alone, if they are some.
func TestOfMetadata(t *testing.T) {
	for value, want := range map[string]bool{"0": true, "41": true, "-1": false, "01": false, "x": false, "99999999999": false} {
		for _, key := range numbers {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d", key: value}}}
			report := Of(pod)
			if _, has := report.Annotations[key]; has != want || report.Labels != nil || report.Annotations["c"] != "" {
				t.Errorf("of %s %q: %+v", key, value, report.ObjectMeta)
			}
		}
	}
}

func TestPackKeepsAll(t *testing.T) {
	report := Of(endedPod("p"))
	data, err := pack(report)
	if err != nil {
		t.Fatal(err)
	}
	digest, at, compressed, ok := cut(data)
	if !ok || digest == "" || at&isReady != 0 || at&isQuiet != 0 {
		t.Errorf("packed: %q %b", digest, at)
	}
	back, err := unpack(compressed)
	if err != nil || !cmp.Equal(back.Status.ContainerStatuses, report.Status.ContainerStatuses) || len(back.Status.Conditions) != len(report.Status.Conditions) {
		t.Errorf("unpacked, error %v: %s", err, cmp.Diff(report, back))
	}
	if len(compressed) > 400 {
		t.Errorf("a usual report takes %d bytes", len(compressed))
	}
	if _, _, _, ok := cut(""); ok {
		t.Error("nothing is a report")
	}
	if _, err := unpack("nonsense"); err == nil {
		t.Error("nonsense is a report")
	}
}

func endedPod(name string) *corev1.Pod {
	at := metav1.NewTime(time.Now().Truncate(time.Second))
	condition := func(of corev1.PodConditionType, status corev1.ConditionStatus, reason string) corev1.PodCondition {
		return corev1.PodCondition{Type: of, Status: status, LastTransitionTime: at, Reason: reason}
	}
	const id = "containerd://5f2b8b8e6f0b7c1a2d3e4f5061728394a5b6c7d8e9f00112233445566778899aa"
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team", Name: name, UID: types.UID("uid-of-" + name),
			OwnerReferences: []metav1.OwnerReference{{Kind: "Job", Name: "job", UID: "mirror", Controller: ptr.To(true)}},
		},
		Spec: corev1.PodSpec{NodeName: "n"},
		Status: corev1.PodStatus{
			Phase: corev1.PodSucceeded, StartTime: &at, PodIP: "10.0.0.1",
			Conditions: []corev1.PodCondition{
				condition(corev1.PodReadyToStartContainers, "False", ""), condition(corev1.PodInitialized, "True", "PodCompleted"),
				condition(corev1.PodReady, "False", "PodCompleted"), condition(corev1.ContainersReady, "False", "PodCompleted"), condition(corev1.PodScheduled, "True", ""),
			},
			ContainerStatuses: []corev1.ContainerStatus{{
				Name: "main", Image: "registry.example.com/team/train:v17",
				ImageID:     "registry.example.com/team/train@sha256:9b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f90a",
				ContainerID: id, Started: ptr.To(false),
				State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: at, FinishedAt: at, ContainerID: id}},
			}},
		},
	}
}

func TestQuiet(t *testing.T) {
	waiting := func(reason string) corev1.PodStatus {
		return corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{
			{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}},
		}}
	}
	scheduled := func(status corev1.ConditionStatus) corev1.PodStatus {
		return corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: status}}}
	}
	inits := corev1.PodStatus{Phase: corev1.PodPending, InitContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}}
	for name, row := range map[string]struct {
		status corev1.PodStatus
		quiet  bool
	}{
		"new":              {corev1.PodStatus{Phase: corev1.PodPending}, true},
		"scheduled":        {scheduled("True"), true},
		"unschedulable":    {scheduled("False"), false},
		"creating":         {waiting("ContainerCreating"), true},
		"no image":         {waiting("ImagePullBackOff"), false},
		"init runs":        {inits, false},
		"running":          {corev1.PodStatus{Phase: corev1.PodRunning}, false},
		"disrupted (kept)": {corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: "True"}}}, false},
	} {
		if got := quiet(&row.status); got != row.quiet {
			t.Errorf("%s: quiet is %v", name, got)
		}
	}
}
