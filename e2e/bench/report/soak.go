package report

import (
	"io"
	"time"
)

// Soak is what a run under steady load has measured.
type Soak struct {
	Workers, Cores int
	Duration       time.Duration
	// Rate is how many Jobs were submitted in a second.
	Rate float64
	Measured
}

// SoakMarkdown writes a run as Markdown.
func SoakMarkdown(out io.Writer, s *Soak) error {
	return s.markdown(out, "%s with %.1f Jobs per second, %d workers, %d cores for everything", s.Duration, s.Rate, s.Workers, s.Cores)
}
