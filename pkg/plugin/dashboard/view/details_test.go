package view

import (
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/util/costtest"
)

// The Job's own events aren't buried by those of its Pods.
func TestEvents(t *testing.T) {
	moved := event("Moved", "Moved from worker east to worker west", 50*time.Second)
	created := of("west", event("SuccessfulCreate", "Created pod", 40*time.Second))
	failed := of("west", event("BackOff", "Back-off restarting", 30*time.Second))
	failed.InvolvedObject.Kind, failed.Type = "Pod", corev1.EventTypeWarning
	for _, row := range []struct {
		name          string
		own, ofWorker []corev1.Event
		chosen, want  string
	}{
		{"nothing is chosen", []corev1.Event{moved}, []corev1.Event{created, failed}, "", "Moved of job: job 1, warnings 1, all 3"},
		{"warnings", []corev1.Event{moved}, []corev1.Event{created, failed}, "warnings", "BackOff of warnings: job 1, warnings 1, all 3"},
		{"all", []corev1.Event{moved}, []corev1.Event{created, failed}, "all", "BackOff SuccessfulCreate Moved of all: job 1, warnings 1, all 3"},
		{"the Job's own have expired", nil, []corev1.Event{created}, "", "SuccessfulCreate of all: job 0, warnings 0, all 1"},
		{"of the Job, which has none", nil, []corev1.Event{created}, "job", " of job: job 0, warnings 0, all 1"},
		{"there are none", nil, nil, "", " of : job 0, warnings 0, all 0"},
	} {
		got := NewJobPage(JobInput{Job: job("a"), HubEvents: row.own, WorkerEvents: row.ofWorker, Events: row.chosen}, now).Events
		var reasons, filters []string
		for _, e := range got.Rows {
			reasons = append(reasons, e.Reason)
		}
		chosen := ""
		for _, f := range got.Filters {
			filters = append(filters, fmt.Sprint(f.Value, " ", f.Count))
			if f.Chosen {
				chosen = f.Value
			}
		}
		if text := fmt.Sprintf("%s of %s: %s", strings.Join(reasons, " "), chosen, strings.Join(filters, ", ")); text != row.want {
			t.Errorf("%s: %s, want %s", row.name, text, row.want)
		}
	}
}

func TestPodOfIndex(t *testing.T) {
	named := func(name, worker, index string, ago time.Duration) corev1.Pod {
		pod := corev1.Pod{}
		pod.Name, pod.CreationTimestamp = name, before(ago)
		pod.Annotations = map[string]string{batchv1.JobCompletionIndexAnnotation: index, v1alpha1.AnnotationCluster: worker}
		pod.Spec.Containers = []corev1.Container{{Name: "main"}, {Name: "side"}}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "side", RestartCount: 2}}
		return pod
	}
	pods := []corev1.Pod{named("a", "west", "7", time.Minute), named("b", "east", "7", time.Second), named("c", "west", "8", time.Minute), named("c", "east", "9", time.Minute)}
	if pod := PodOfIndex(pods, "7"); pod == nil || pod.Name != "b" || pod.Containers[0].Restarted || !pod.Containers[1].Restarted {
		t.Errorf("%+v, want the newest Pod, with a container that has restarted", pod)
	}
	if pod := PodOfIndex(pods, "6"); pod != nil {
		t.Errorf("%+v, want none", pod)
	}
	if pod := PodNamed(pods, "c", "east"); pod == nil || pod.Index != "9" {
		t.Errorf("%+v, want that of east", pod)
	}
	if pod := PodNamed(pods, "c", ""); pod == nil || pod.Index != "8" {
		t.Errorf("%+v, want the first", pod)
	}
	if pod := PodNamed(pods, "a", "east"); pod != nil {
		t.Errorf("%+v, want none", pod)
	}
}

func TestFailedIndexes(t *testing.T) {
	in := JobInput{Job: job("a", completed("0-2"), func(j *batchv1.Job) {
		j.Spec.Completions, j.Status.FailedIndexes = ptr.To[int32](100), ptr.To("3,5-9,30-90")
	})}
	page := NewJobPage(in, now)
	if len(page.FailedIndexes) != maxFailed || page.FailedIndexes[1] != 5 || page.FailedOmitted != 67-maxFailed {
		t.Errorf("%v and %d more", page.FailedIndexes, page.FailedOmitted)
	}
}

// A Pod's reason is read once, and only its begin, however many Pods there are.
func TestPodRowsCost(t *testing.T) {
	const most = 3 << 10 // for a Pod, which is copied once
	pods := make([]corev1.Pod, 2000)
	for i := range pods {
		pods[i].Name, pods[i].CreationTimestamp = fmt.Sprint(i), before(time.Duration(i*7919%2000)*time.Second)
		pods[i].Status.Phase = corev1.PodRunning
		if i%3 > 0 {
			pods[i].Status.Reason = strings.Repeat("x\x00", 250)
		}
	}
	if cost := costtest.Of(func() { podRows(pods) }) / uint64(len(pods)); cost > most {
		t.Errorf("%d bytes a Pod, want %d at most", cost, most)
	}
}
