package main

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestOrder(t *testing.T) {
	pod := func(host string, created, ready int64) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.Unix(created, 0)}}
		p.Spec.Hostname, p.Status.Phase = host, corev1.PodPending
		if ready > 0 {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Unix(ready, 0)}}
		}
		return p
	}
	ended, deleted := pod("ended", 5, 0), pod("deleted", 5, 0)
	ended.Status.Phase = corev1.PodSucceeded
	deleted.DeletionTimestamp = &metav1.Time{Time: time.Unix(9, 0)}
	for _, test := range []struct {
		name string
		a, b []*corev1.Pod
		same bool
	}{
		{"other seconds, the same order", []*corev1.Pod{pod("x", 1, 0), pod("y", 2, 0)}, []*corev1.Pod{pod("x", 7, 0), pod("y", 9, 0)}, true},
		{"a second ended between two", []*corev1.Pod{pod("x", 1, 0), pod("y", 1, 0)}, []*corev1.Pod{pod("x", 1, 0), pod("y", 2, 0)}, false},
		{"ready in another order", []*corev1.Pod{pod("x", 1, 3), pod("y", 1, 4)}, []*corev1.Pod{pod("x", 1, 4), pod("y", 1, 3)}, false},
		{"either of two that are alike", []*corev1.Pod{pod("x", 1, 0), pod("x", 2, 0)}, []*corev1.Pod{pod("x", 4, 0), pod("x", 3, 0)}, true},
		{"Pods that aren't active", []*corev1.Pod{pod("x", 1, 0), ended, deleted}, []*corev1.Pod{pod("x", 1, 0)}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			if a, b := order(test.a), order(test.b); (a == b) != test.same {
				t.Errorf("the order is\n%s\nand\n%s", a, b)
			}
		})
	}
}

// Which of two Pods of a class an event hits is chance: Pods that count differently aren't of one
// class.
func TestFailuresAreOfTheirOwnClass(t *testing.T) {
	failed := func(code int32, conditions ...corev1.PodCondition) *corev1.Pod {
		ended := corev1.ContainerStatus{Name: "main", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}}
		return &corev1.Pod{Status: corev1.PodStatus{
			Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{ended}, Conditions: conditions,
		}}
	}
	disrupted := corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}
	counts, ignored, again := class(failed(1)), class(failed(codeIgnore)), class(failed(1))
	if counts == ignored || counts == class(failed(1, disrupted)) {
		t.Errorf("of one class: %q, %q, %q", counts, ignored, class(failed(1, disrupted)))
	}
	if counts != again {
		t.Errorf("of two classes: %q, %q", counts, again)
	}
}
