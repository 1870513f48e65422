package report

import "io"

// Scale is what one run has measured of many workers.
type Scale struct {
	Workers, Jobs, Finished int
	// Machine is what ran it all, see measure.Machine.
	Machine string
	Measured
}

// ScaleMarkdown writes a run as Markdown.
func ScaleMarkdown(out io.Writer, s *Scale) error {
	return s.markdown(out, "%d workers, %d live and %d finished Jobs, %s for everything", s.Workers, s.Jobs, s.Finished, s.Machine)
}
