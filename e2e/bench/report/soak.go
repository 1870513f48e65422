package report

import (
	"io"
	"time"
)

// Soak is what a run under steady load has measured.
type Soak struct {
	Workers int
	// Machine is what ran it all, see measure.Machine.
	Machine  string
	Duration time.Duration
	// Rate is how many Jobs were submitted in a second.
	Rate float64
	Measured
}

// SoakMarkdown writes a run as Markdown.
func SoakMarkdown(out io.Writer, s *Soak) error {
	return s.markdown(out, "%s with %.1f Jobs per second, %d workers, %s for everything", s.Duration, s.Rate, s.Workers, s.Machine)
}
