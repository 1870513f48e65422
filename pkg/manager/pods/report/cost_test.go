package report

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/jobferry/jobferry/pkg/util/costtest"
)

// FuzzCost cleans Pods of which one text is very long.
func FuzzCost(f *testing.F) {
	for _, part := range []string{"/", "a/", "a", "\x00", "://"} {
		f.Add("a", part, "")
	}
	costtest.Check(f, 1<<20, 4, func(text string) {
		containers := []corev1.ContainerStatus{{Name: text}, {Name: "a", Image: text, ImageID: text, ContainerID: text}}
		Of(&corev1.Pod{Status: corev1.PodStatus{
			Reason: text, Message: text, Phase: corev1.PodPhase(text),
			Conditions:        []corev1.PodCondition{{Type: corev1.PodConditionType(text), Status: corev1.ConditionTrue}, {Type: "a", Status: corev1.ConditionStatus(text)}},
			ContainerStatuses: containers, InitContainerStatuses: containers,
		}})
	})
}
