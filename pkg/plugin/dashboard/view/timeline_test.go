package view

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/plugin/show"
)

// A tenant writes very many events about his Job, which name as many workers.
func TestManyEventsMakeFewLanes(t *testing.T) {
	created := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "job", UID: "uid", CreationTimestamp: metav1.NewTime(created)}}
	var events []show.Entry
	for i := range 20_000 {
		events = append(events, show.Entry{From: show.Hub, Event: corev1.Event{
			InvolvedObject: corev1.ObjectReference{Kind: "Job", Namespace: "team", Name: "job", UID: "uid"}, ReportingController: v1alpha1.EventController,
			Reason: v1alpha1.EventPlaced, Message: fmt.Sprintf("Placed on worker w%d: by a tenant", i),
			EventTime: metav1.NewMicroTime(created.Add(time.Duration(i) * time.Second)),
		}})
	}
	line := NewTimeline(job, events, nil, created.Add(24*time.Hour))
	spans := 0
	for _, l := range line.Lanes {
		spans += len(l.Spans)
	}
	if len(line.Lanes) < 2 || len(line.Lanes) > maxLanes || spans > maxChanges {
		t.Errorf("%d lanes of %d spans", len(line.Lanes), spans)
	}
}
