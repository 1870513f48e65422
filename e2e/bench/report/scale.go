package report

import (
	"fmt"
	"io"
)

// Scale is what one run has measured of many workers.
type Scale struct {
	Workers, Jobs, Finished int
	// Machine is what ran it all, see measure.Machine.
	Machine string
	// MemoryLimit is the manager's GOMEMLIMIT. Empty: it had none.
	MemoryLimit string `json:",omitempty"`
	// Unfinished: the time was over before all was measured.
	Unfinished bool `json:",omitempty"`
	// NotAtRest: a manager still worked when some figures were measured that are those of one at rest.
	NotAtRest bool `json:",omitempty"`
	Measured
}

// ScaleMarkdown writes a run as Markdown.
func ScaleMarkdown(out io.Writer, s *Scale) error {
	title := fmt.Sprintf("%d workers, %d live and %d finished Jobs, %s for everything", s.Workers, s.Jobs, s.Finished, s.Machine)
	if s.MemoryLimit != "" {
		title += ", GOMEMLIMIT=" + s.MemoryLimit
	}
	if s.Unfinished {
		title += "; ended by -time-limit"
	}
	if s.NotAtRest {
		title += "; measured before a manager was at rest"
	}
	return s.markdown(out, "%s", title)
}

// MissedGoals names the goals that a run misses, or didn't come to.
func (s *Scale) MissedGoals() []string {
	missed := s.Measured.MissedGoals()
	if s.Unfinished {
		missed = append(missed, "the time was over before all was measured")
	}
	if s.NotAtRest {
		missed = append(missed, "a manager wasn't at rest when it was measured")
	}
	return missed
}
