package placement

import (
	"fmt"
	"strings"

	"github.com/jobferry/jobferry/pkg/placement/internal/scheduling"
)

// forMate ends a message about a mate, by the name of its Job.
func forMate(name string) string { return fmt.Sprintf(" for Job %s of its group", name) }

// ofMate is what a mate is refused for; nil: none is.
func ofMate(a *scheduling.Answer, explain func(*scheduling.Answer) *objection) *objection {
	if a.Mate == nil {
		return nil
	}
	o := explain(&a.Mate.Answer)
	o.message += forMate(a.Mate.Name)
	o.field = "" // it's none of the Job's
	return o
}

// neverFits explains why no Pod will ever fit.
func neverFits(a *scheduling.Answer) *objection {
	if o := ofMate(a, neverFits); o != nil {
		return o
	}
	if len(a.Reasons) == 0 {
		return &objection{message: "without nodes"}
	}
	return objectionOf(a, "never fits: ", details(a))
}

// insufficient explains why fewer Pods fit now than are needed at once.
func insufficient(a *scheduling.Answer) *objection {
	if o := ofMate(a, insufficient); o != nil {
		return o
	}
	detail := fmt.Sprintf("Pods that must fit at once: %d, that would: %d", a.Needed(), a.Now)
	if more := details(a); more != "" {
		detail += "; " + more
	}
	return objectionOf(a, "", detail)
}

// objectionOf has the scheduler's words for the nodes that are nearest to fitting. There are no
// numbers in them: they change by the minute, and differ between clusters.
func objectionOf(a *scheduling.Answer, prefix, detail string) *objection {
	reasons := a.Nearest()
	messages, o := make([]string, len(reasons)), &objection{detail: detail}
	for i := range reasons {
		messages[i] = reasons[i].Brief()
		o.plugin, o.field = reasons[i].Plugin, reasons[i].Field // those of one plugin read one field
	}
	o.message = prefix + strings.Join(messages, " and ")
	return o
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
