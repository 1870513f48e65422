package screen

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jobferry/jobferry/e2e/demo/state"
	"github.com/jobferry/jobferry/e2e/demo/view"
)

// Control sequences of ECMA-48, and private modes that xterm and its kin know. Others ignore them.
const (
	enter = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J" // alternate screen, no cursor, no wrapping
	leave = "\x1b[?7h\x1b[?25h\x1b[?1049l"

	beginFrame, endFrame = "\x1b[?2026h", "\x1b[?2026l" // what is between appears at once
	clearLine, clearRest = "\x1b[K", "\x1b[J"
)

const (
	// framePause keeps the frames per second at what an eye can follow.
	framePause = 50 * time.Millisecond
	// refresh is how often all is drawn anew: keys that were pressed leave their echo on the
	// screen.
	refresh = time.Second
)

// live draws frames over each other.
type live struct {
	out   io.Writer
	size  func() (width, height int, err error)
	color bool

	width, height int
	drawn         []string
	full          time.Time // when all was drawn
}

func newLive(out io.Writer, size func() (int, int, error), color bool) *live {
	_, _ = io.WriteString(out, enter)
	return &live{out: out, size: size, color: color}
}

func (*live) Pause() time.Duration { return framePause }

func (l *live) Close() { _, _ = io.WriteString(l.out, leave) }

func (l *live) Show(s state.State, now time.Time) {
	width, height, err := l.size()
	if err != nil {
		width, height = 80, 24
	}
	if width != l.width || height != l.height || now.Sub(l.full) >= refresh {
		l.width, l.height, l.drawn, l.full = width, height, nil, now
	}
	// The last column stays free: after a character there, terminals differ about where the cursor
	// is.
	lines := view.Frame(s, now, view.Options{Width: max(1, width-1), Height: max(1, height), Color: l.color})
	if frame := l.draw(lines); frame != "" {
		_, _ = io.WriteString(l.out, beginFrame+frame+endFrame)
	}
}

// draw makes what turns the drawn lines into the new ones.
func (l *live) draw(lines []string) string {
	var frame strings.Builder
	for i, line := range lines {
		if i >= len(l.drawn) || l.drawn[i] != line {
			fmt.Fprintf(&frame, "\x1b[%d;1H%s%s", i+1, line, clearLine)
		}
	}
	if (l.drawn == nil || len(l.drawn) > len(lines)) && len(lines) < l.height {
		fmt.Fprintf(&frame, "\x1b[%d;1H%s", len(lines)+1, clearRest)
	}
	l.drawn = lines
	return frame.String()
}
