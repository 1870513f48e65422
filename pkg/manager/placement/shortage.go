package placement

import (
	"fmt"
	"strings"

	"github.com/jobferry/jobferry/pkg/manager/placement/scheduling"
)

// neverFits explains why no Pod will ever fit.
func neverFits(a *scheduling.Answer) *objection {
	if len(a.Reasons) == 0 {
		return &objection{message: "without nodes"}
	}
	return &objection{message: "never fits: " + nearest(a), detail: details(a)}
}

// insufficient explains why fewer Pods fit now than are needed at once.
func insufficient(a *scheduling.Answer) *objection {
	detail := fmt.Sprintf("Pods that must fit at once: %d, that would: %d", a.Needed(), a.Now)
	if more := details(a); more != "" {
		detail += "; " + more
	}
	return &objection{message: nearest(a), detail: detail}
}

// nearest has the scheduler's words for the nodes that are nearest to fitting. There are no numbers
// in it: they change by the minute, and differ between clusters.
func nearest(a *scheduling.Answer) string {
	reasons := a.Nearest()
	messages := make([]string, len(reasons))
	for i := range reasons {
		messages[i] = reasons[i].Message
	}
	return strings.Join(messages, " and ")
}

// details counts the nodes by their reasons, with the Job's fields.
func details(a *scheduling.Answer) string {
	parts := make([]string, 0, len(a.Reasons))
	for i := range a.Reasons {
		c := &a.Reasons[i]
		part := c.Message
		if c.Nodes > 0 {
			part = fmt.Sprintf("%d %s", c.Nodes, c.Message)
		}
		if c.Field != "" {
			part += " (" + c.Field + ")"
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}
