package report

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/packed"
	"github.com/jobferry/jobferry/pkg/manager/usage/podtimes"
)

// annotationReport has the packed report in a Pod as the feed takes it in.
const annotationReport = v1alpha1.KeyPrefix + "report"

var codec = packed.NewCodec(usual())

// usual is the report of a Pod that has ended. What isn't in it only takes more memory.
func usual() []byte {
	at := metav1.Unix(1_790_000_000, 0)
	condition := func(of corev1.PodConditionType, status corev1.ConditionStatus, reason string) corev1.PodCondition {
		return corev1.PodCondition{Type: of, Status: status, LastTransitionTime: at, Reason: reason}
	}
	report := corev1.Pod{Status: corev1.PodStatus{
		Phase: corev1.PodSucceeded, StartTime: &at,
		Conditions: []corev1.PodCondition{
			condition(corev1.PodReadyToStartContainers, corev1.ConditionFalse, ""),
			condition(corev1.PodInitialized, corev1.ConditionTrue, "PodCompleted"),
			condition(corev1.PodReady, corev1.ConditionFalse, "PodCompleted"),
			condition(corev1.ContainersReady, corev1.ConditionFalse, "PodFailed"),
			condition(corev1.PodScheduled, corev1.ConditionTrue, ""),
		},
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: "main", Image: "docker.io/library/busybox:latest", ImageID: "docker.io/library/busybox@sha256:", ContainerID: "containerd://", Started: new(bool),
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				Reason: "Completed", StartedAt: at, FinishedAt: at, ContainerID: "containerd://",
			}},
		}},
	}}
	proto, err := report.Marshal()
	if err != nil {
		panic(fmt.Sprintf("marshal a Pod: %v", err)) // can't be: it's a constant
	}
	return proto
}

// digestOf is what a shadow Pod says of the report that it was made from. Any process of any
// release computes the same.
func digestOf(proto []byte) string {
	h := fnv.New64a()
	_, _ = h.Write(proto) // it doesn't fail
	return strconv.FormatUint(h.Sum64(), 36)
}

// pack returns the digest of a report, a space, what is read of it often, and the report.
func pack(report *corev1.Pod) (string, error) {
	proto, err := report.Marshal()
	if err != nil {
		return "", fmt.Errorf("report of a Pod: %w", err)
	}
	return digestOf(proto) + " " + string(glanceOf(&report.Status)) + codec.Pack(proto), nil
}

// cut divides what pack returned.
func cut(data string) (digest string, at glance, compressed string, ok bool) {
	digest, rest, _ := strings.Cut(data, " ")
	if rest == "" {
		return "", 0, "", false
	}
	return digest, glance(rest[0]), rest[1:], true
}

// unpack returns the report of which cut returned the compressed part.
func unpack(compressed string) (*corev1.Pod, error) {
	report := &corev1.Pod{}
	if err := codec.Unpack(compressed, report); err != nil {
		return nil, fmt.Errorf("report of a Pod: %w", err)
	}
	return report, nil
}

// Slim is what a Store reads of a Pod; false: nothing. Only one that is shown has a report, and
// what can't be encoded isn't shown.
func Slim(pod *corev1.Pod, shown bool) (*corev1.Pod, bool) {
	slim, hold := podtimes.Slim(pod)
	if !hold {
		return slim, false
	}
	slim.OwnerReferences[0].Name = metav1.GetControllerOf(pod).Name
	if !shown {
		return slim, true
	}
	if data, err := pack(Of(pod)); err == nil {
		slim.Annotations = map[string]string{annotationReport: data}
		slim.DeletionGracePeriodSeconds = pod.DeletionGracePeriodSeconds
	}
	return slim, true
}
