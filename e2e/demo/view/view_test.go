package view

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jobferry/jobferry/e2e/demo/state"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares lines with a file. Escape characters are shown as ␛ there, so that a person can
// read it.
func golden(t *testing.T, name string, lines []string) {
	t.Helper()
	got := strings.ReplaceAll(strings.Join(lines, "\n")+"\n", "\x1b", "␛")
	file := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s\n(-update writes it, if that's right)", file, got, want)
	}
}

func TestFrame(t *testing.T) {
	for _, row := range []struct {
		name    string
		state   state.State
		now     float64
		options Options
	}{
		{"frame-empty", empty(), 0, Options{Width: 80, Height: 24}},
		{"frame-building", building(), 95.25, Options{Width: 100, Height: 24}},
		{"frame-registering", registering(), 165.5, Options{Width: 100, Height: 24}},
		{"frame-running-wide", running(), 170, Options{Width: 140, Height: 40}},
		{"frame-running-80", running(), 170, Options{Width: 80, Height: 24}},
		{"frame-running-60", running(), 170, Options{Width: 60, Height: 24}},
		{"frame-running-40", running(), 170, Options{Width: 40, Height: 24}},
		{"frame-running-low", running(), 170, Options{Width: 80, Height: 9}},
		{"frame-running-color", running(), 170, Options{Width: 120, Height: 30, Color: true}},
		{"frame-finishing", finishing(), 171, Options{Width: 120, Height: 30}},
		{"frame-ended", ended(), 200, Options{Width: 120, Height: 30}},
		{"frame-wrong-color", wrong(), 400, Options{Width: 120, Height: 30, Color: true}},
	} {
		t.Run(row.name, func(t *testing.T) {
			golden(t, row.name, Frame(row.state, at(row.now), row.options))
		})
	}
}

func TestResult(t *testing.T) {
	golden(t, "result", Result(ended(), at(200), Options{}))
	golden(t, "result-60", Result(ended(), at(200), Options{Width: 60}))
	golden(t, "result-wrong", Result(wrong(), at(400), Options{}))
	golden(t, "result-wrong-color", Result(wrong(), at(400), Options{Width: 120, Color: true}))
}

// One run as plain lines, from state to state.
func TestChanges(t *testing.T) {
	var lines []string
	last := state.State{}
	for i, s := range []state.State{empty(), building(), registering(), placed(), running(), running(), finishing(), ended(), wrong()} {
		lines = append(lines, Changes(last, s, at(float64(i*20)))...)
		last = s
	}
	gone := wrong()
	gone.LostWorker("west")
	gone.LostJob("render")
	gone.StepBegan("Look", "", at(180))
	gone.StepEnded("Look", "nothing there", true, at(180))
	golden(t, "changes", append(lines, Changes(wrong(), gone, at(180))...))
}

// Whatever the size, a frame fits in.
func TestFramesFit(t *testing.T) {
	for _, s := range []state.State{empty(), building(), registering(), placed(), running(), finishing(), ended(), wrong()} {
		for w := 1; w < 160; w++ {
			for _, h := range []int{1, 2, 5, 10, 24, 50} {
				lines := Frame(s, at(300), Options{Width: w, Height: h})
				if len(lines) > h {
					t.Fatalf("%dx%d: %d lines", w, h, len(lines))
				}
				for _, l := range lines {
					if width(l) > w {
						t.Fatalf("%dx%d: %q", w, h, l)
					}
				}
			}
		}
	}
}

// The columns don't move while the Jobs go on.
func TestColumnsKeepTheirPlaces(t *testing.T) {
	o := Options{Width: 120, Height: 40}
	heading := func(s state.State) string {
		for _, l := range Frame(s, at(170), o) {
			if strings.HasPrefix(l, " JOB ") {
				return l
			}
		}
		return ""
	}
	if a, b, c := heading(running()), heading(finishing()), heading(ended()); a != b || b != c || a == "" {
		t.Errorf("\n%s\n%s\n%s", a, b, c)
	}
}

func TestControlCharactersStayOut(t *testing.T) {
	s := running()
	s.SawNews(state.News{At: at(1), Job: "pi", Reason: "Evil", Note: "a\x1b[2Jb\nc\u009bd"})
	for _, l := range Frame(s, at(2), Options{Width: 100, Height: 30}) {
		if strings.ContainsAny(l, "\x1b\n\u009b") {
			t.Errorf("%q", l)
		}
	}
	for _, l := range Changes(running(), s, at(2)) {
		if strings.ContainsAny(l, "\x1b\n\u009b") {
			t.Errorf("%q", l)
		}
	}
}

func TestBar(t *testing.T) {
	for _, row := range []struct {
		done, active, of int32
		want             string
	}{
		{0, 0, 10, "░░░░░░░░░░"}, {3, 0, 10, "███░░░░░░░"}, {3, 2, 10, "███▒▒░░░░░"}, {10, 0, 10, "██████████"},
		{0, 1, 100, "▒░░░░░░░░░"}, {99, 1, 100, "█████████▒"}, {12, 3, 10, "██████████"}, {0, 0, 0, "░░░░░░░░░░"},
		{0, 5, 0, "▒▒▒▒▒▒▒▒▒▒"},
	} {
		full, busy, rest := bar(row.done, row.active, row.of, 10)
		if got := full + busy + rest; got != row.want {
			t.Errorf("%d+%d of %d: %s, want %s", row.done, row.active, row.of, got, row.want)
		}
	}
}

func TestTook(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "-", 1234 * time.Millisecond: "1.2s", 3 * time.Second: "3s", 14600 * time.Millisecond: "15s",
		90 * time.Second: "90s", 3*time.Minute + 2*time.Second: "3m2s", 10 * time.Millisecond: "0s",
	} {
		if got := took(d); got != want {
			t.Errorf("%s: %s, want %s", d, got, want)
		}
	}
}

func TestCores(t *testing.T) {
	for milli, want := range map[int64]string{0: "0", 1500: "1.5", 12000: "12", 11250: "11.2", 100000: "100"} {
		if got := cores(milli); got != want {
			t.Errorf("%d: %s, want %s", milli, got, want)
		}
	}
}
