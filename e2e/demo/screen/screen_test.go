package screen

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jobferry/jobferry/e2e/demo/state"
	"github.com/jobferry/jobferry/e2e/demo/view"
)

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// terminal records what is written to it.
type terminal struct {
	strings.Builder
	width, height int
	err           error
}

func (t *terminal) size() (int, int, error) { return t.width, t.height, t.err }

// take returns what was written since the last time.
func (t *terminal) take() string {
	s := t.String()
	t.Reset()
	return s
}

func building(note string) state.State {
	s := state.New(began, nil)
	s.StepBegan("Build", "", began)
	s.StepEnded("Build", "", false, began)
	s.StepBegan("Start", note, began)
	return s
}

func TestLiveGivesTheTerminalBack(t *testing.T) {
	term := &terminal{width: 80, height: 24}
	l := newLive(term, term.size, true)
	if got := term.take(); got != enter {
		t.Errorf("enters by %q", got)
	}
	l.Close()
	if got := term.take(); got != leave {
		t.Errorf("leaves by %q", got)
	}
}

func TestLiveDrawsWhatHasChanged(t *testing.T) {
	term := &terminal{width: 80, height: 24}
	l := newLive(term, term.size, false)
	l.Show(building("first"), began)
	if got := term.take(); !strings.Contains(got, "Build") || !strings.Contains(got, "first") || !strings.Contains(got, clearRest) {
		t.Errorf("first frame %q", got)
	}
	l.Show(building("first"), began)
	if got := term.take(); got != "" {
		t.Errorf("the same again is drawn: %q", got)
	}
	l.Show(building("second"), began)
	if got := term.take(); strings.Contains(got, "Build") || !strings.Contains(got, "second") {
		t.Errorf("second frame %q", got)
	}
	l.Show(state.New(began, nil), began)
	if got := term.take(); !strings.Contains(got, clearRest) {
		t.Errorf("what is gone stays: %q", got)
	}
}

func TestLiveDrawsAllNow(t *testing.T) {
	for name, change := range map[string]func(*terminal) time.Time{
		"after a resize":              func(term *terminal) time.Time { term.width = 60; return began },
		"each second":                 func(*terminal) time.Time { return began.Add(refresh) },
		"where the size is not known": func(term *terminal) time.Time { term.err = errors.New("no"); term.width = 80; return began },
	} {
		term := &terminal{width: 100, height: 30}
		l := newLive(term, term.size, false)
		l.Show(building(""), began)
		term.take()
		now := change(term)
		l.Show(building(""), now)
		if got := term.take(); !strings.Contains(got, "Build") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestLiveFillsNoLastColumn(t *testing.T) {
	term := &terminal{width: 20, height: 3}
	l := newLive(term, term.size, false)
	l.Show(building(strings.Repeat("x", 50)), began)
	if got := term.take(); strings.Contains(got, clearRest) || strings.Contains(got, "\x1b[4;1H") {
		t.Errorf("draws below the last line: %q", got)
	}
}

func TestLinesWriteEachChangeOnce(t *testing.T) {
	var out strings.Builder
	l := NewLines(&out)
	for _, note := range []string{"first", "first", "second"} {
		l.Show(building(note), began)
	}
	l.Close()
	want := " 0:00  step    Build: done in -\n 0:00  step    Start: first\n 0:00  step    Start: second\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
	if l.Pause() != 0 {
		t.Error("lines pause")
	}
}

func TestFilesAreNoTerminals(t *testing.T) {
	f, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, ok := New(f).(*Lines); !ok {
		t.Error("a file gets a live picture")
	}
	if got := Options(f); got != (view.Options{}) {
		t.Errorf("%+v", got)
	}
}

func TestNoColor(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	if colorWanted() {
		t.Error("colours in spite of NO_COLOR")
	}
	t.Setenv("NO_COLOR", "")
	if !colorWanted() {
		t.Error("an empty NO_COLOR counts")
	}
}
