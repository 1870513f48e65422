package view

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

func TestWorkerPage(t *testing.T) {
	w := &v1alpha1.WorkerCluster{ObjectMeta: metav1.ObjectMeta{Name: "west"}}
	w.Spec.Drain, w.Spec.WorkerLostTimeout = true, &metav1.Duration{Duration: time.Hour}
	condition := func(kind string, status metav1.ConditionStatus, message string) {
		w.Status.Conditions = append(w.Status.Conditions, metav1.Condition{Type: kind, Status: status, Message: message, LastTransitionTime: before(time.Minute)})
	}
	page := NewWorkerPage(w)
	if page.Stale || page.Facts[0] != (Fact{"Token", "None that the manager renews"}) {
		t.Errorf("%+v", page)
	}
	condition(v1alpha1.ConditionReady, metav1.ConditionFalse, "no route")
	condition(v1alpha1.ConditionLost, metav1.ConditionTrue, "")
	condition(v1alpha1.ConditionFenced, metav1.ConditionUnknown, "")
	condition(v1alpha1.ConditionTokenRenewed, metav1.ConditionTrue, "the token expires at noon")
	page = NewWorkerPage(w)
	var got []string
	for _, c := range page.Conditions {
		got = append(got, fmt.Sprint(c.Type, "=", c.Status.Text, " ", c.Status.Tone))
	}
	if diff := cmp.Diff([]string{"Lost=True bad", "Ready=False bad", "Fenced=Unknown warn", "TokenRenewed=True good"}, got); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Fact{{"Token", "the token expires at noon"}, {"Lost after", "1h0m0s"}}, page.Facts); diff != "" {
		t.Errorf("facts (-want +got):\n%s", diff)
	}
	if !page.Stale || !page.Cordoned {
		t.Errorf("%+v is out of touch, and drained", page)
	}
}
