package kueue

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// usability is whether a worker that a check names can be used.
type usability struct {
	Worker string
	// Trouble says why not; empty: it can.
	Trouble string
}

// decideActive says what a check's condition Active shall be.
func decideActive(g gate, workers []usability) metav1.Condition {
	active := metav1.Condition{Type: kueue.AdmissionCheckActive, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonActive}
	if g.Problem != "" {
		active.Status, active.Reason, active.Message = metav1.ConditionFalse, v1alpha1.ReasonBadConfig, g.Problem
		return active
	}
	var troubles []string
	for _, w := range workers {
		if w.Trouble != "" {
			troubles = append(troubles, w.Worker+": "+w.Trouble)
		}
	}
	usable := len(workers) - len(troubles)
	active.Message = fmt.Sprintf("%d of %d workers can be used", usable, len(workers))
	switch {
	case usable == 0:
		active.Status, active.Reason = metav1.ConditionFalse, v1alpha1.ReasonNoUsable
	case usable < len(workers):
		active.Reason = v1alpha1.ReasonSomeActive
	}
	if len(troubles) > 0 {
		active.Message += ": " + strings.Join(troubles, "; ")
	}
	return active
}
