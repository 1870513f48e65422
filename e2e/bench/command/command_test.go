package command

import (
	"context"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

type figures struct{ Jobs int }

func fake(worse, missed []string) Command[figures] {
	f := &figures{}
	return Command[figures]{
		Name:     "fake",
		Flags:    func(flags *flag.FlagSet) { flags.IntVar(&f.Jobs, "jobs", 1, "") },
		Run:      func(context.Context) (*figures, error) { return f, nil },
		Markdown: func(io.Writer, *figures) error { return nil },
		Worse:    func(*figures) []string { return worse },
		Missed:   func(*figures) []string { return missed },
	}
}

func TestFiguresAreWrittenAsJSON(t *testing.T) {
	file := filepath.Join(t.TempDir(), "figures.json")
	if err := fake(nil, nil).run(t.Context(), "bench", []string{"-jobs", "7", "-json", file}); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "{\n  \"Jobs\": 7\n}\n" {
		t.Errorf("got %q (%v)", text, err)
	}
}

func TestErrors(t *testing.T) {
	for name, c := range map[string]struct {
		command Command[figures]
		args    []string
		want    string
	}{
		"missed without -check": {fake(nil, []string{"late"}), nil, ""},
		"missed with -check":    {fake(nil, []string{"late"}), []string{"-check"}, "goals missed: late"},
		"worse without -check":  {fake([]string{"slow"}, nil), nil, "worse than the base: slow"},
		"an argument":           {fake(nil, nil), []string{"scale"}, `unexpected argument "scale"`},
	} {
		err := c.command.run(t.Context(), "bench", c.args)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestUsageNamesEachSubcommand(t *testing.T) {
	c := fake(nil, nil)
	c.Summary = "measures nothing"
	if text := usage("bench", []Subcommand{c}); !strings.Contains(text, "fake     measures nothing\n") {
		t.Error(text)
	}
}
