package screen

import (
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/jobferry/jobferry/e2e/demo/state"
	"github.com/jobferry/jobferry/e2e/demo/view"
)

// Display shows states.
type Display interface {
	// Show shows a state at a time.
	Show(s state.State, now time.Time)
	// Pause is how long the next Show should wait at least; 0 for each change at once.
	Pause() time.Duration
	// Close gives the terminal back.
	Close()
}

// New chooses what suits the output: a live picture for a terminal that can move its cursor, else
// lines.
func New(out *os.File) Display {
	if IsTerminal(out) {
		return newLive(out, func() (int, int, error) { return term.GetSize(int(out.Fd())) }, colorWanted())
	}
	return NewLines(out)
}

// IsTerminal says whether the output is a terminal that understands more than plain text.
func IsTerminal(out *os.File) bool {
	return term.IsTerminal(int(out.Fd())) && os.Getenv("TERM") != "dumb"
}

// Options are those for text that stays on the output, such as the result.
func Options(out *os.File) view.Options {
	if !IsTerminal(out) {
		return view.Options{}
	}
	width, _, err := term.GetSize(int(out.Fd()))
	if err != nil {
		width = 0
	}
	return view.Options{Width: width, Color: colorWanted()}
}

// colorWanted follows https://no-color.org.
func colorWanted() bool { return os.Getenv("NO_COLOR") == "" }

// Lines is a display of plain lines.
type Lines struct {
	out  io.Writer
	last state.State
}

// NewLines writes one line for each visible change.
func NewLines(out io.Writer) *Lines { return &Lines{out: out} }

// Show writes what is new.
func (l *Lines) Show(s state.State, now time.Time) {
	for _, line := range view.Changes(l.last, s, now) {
		_, _ = io.WriteString(l.out, line+"\n") // a reader that is gone ends the program by a signal
	}
	l.last = s
}

// Pause is none: no change is to be missed.
func (*Lines) Pause() time.Duration { return 0 }

// Close has nothing to do.
func (*Lines) Close() {}
