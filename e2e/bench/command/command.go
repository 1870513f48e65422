// Package command is what the subcommands of the bench program have in common: the flags for the
// figures and the goals, how progress is told, and how a measurement ends.
package command

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

// Command is a subcommand that measures an R.
type Command[R any] struct {
	Name, Summary string
	// Flags adds the flags for what is measured.
	Flags func(*flag.FlagSet)
	// Run measures, after the flags were parsed.
	Run      func(context.Context) (*R, error)
	Markdown func(io.Writer, *R) error
	// Worse is in what the result is worse than what it was compared with, which always is an error.
	// Nil: it's compared with nothing.
	Worse func(*R) []string
	// Missed are the goals that were missed, which with -check is an error. Nil: there are no goals.
	Missed func(*R) []string
}

// Subcommand is a Command of any R.
type Subcommand interface {
	about() (name, summary string)
	run(ctx context.Context, program string, args []string) error
}

// Main runs the subcommand that the first argument names, which prints its figures as Markdown.
// Main doesn't return after an error.
func Main(program string, all ...Subcommand) {
	asked := ""
	if len(os.Args) > 1 {
		asked = os.Args[1]
	}
	i := slices.IndexFunc(all, func(c Subcommand) bool {
		name, _ := c.about()
		return name == asked
	})
	if i < 0 {
		fmt.Fprint(os.Stderr, usage(program, all))
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := all[i].run(ctx, program, os.Args[2:]); err != nil {
		fmt.Fprintf(os.Stderr, "%s %s: %v\n", program, asked, err)
		os.Exit(1)
	}
}

func usage(program string, all []Subcommand) string {
	text := "Usage: " + program + " SUBCOMMAND [FLAGS], with -help for the flags of a subcommand:\n"
	for _, c := range all {
		name, summary := c.about()
		text += fmt.Sprintf("  %-8s %s\n", name, summary)
	}
	return text
}

func (c Command[R]) about() (name, summary string) { return c.Name, c.Summary }

func (c Command[R]) run(ctx context.Context, program string, args []string) error {
	flags := flag.NewFlagSet(program+" "+c.Name, flag.ExitOnError)
	file := flags.String("json", "", "file to write the figures to, as JSON")
	check := new(bool)
	if c.Missed != nil {
		flags.BoolVar(check, "check", false, "exit with an error if a goal is missed")
	}
	c.Flags(flags)
	_ = flags.Parse(args) // it exits with an error
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	result, err := c.Run(ctx)
	if err != nil {
		return err
	}
	if err := c.Markdown(os.Stdout, result); err != nil {
		return err
	}
	if *file != "" {
		text, err := json.MarshalIndent(result, "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(*file, append(text, '\n'), 0o644); err != nil {
			return err
		}
	}
	return c.judge(result, *check)
}

func (c Command[R]) judge(result *R, check bool) error {
	if c.Worse != nil {
		if worse := c.Worse(result); len(worse) > 0 {
			return errors.New("worse than the base: " + strings.Join(worse, "; "))
		}
	}
	if !check {
		return nil
	}
	if missed := c.Missed(result); len(missed) > 0 {
		return errors.New("goals missed: " + strings.Join(missed, "; "))
	}
	return nil
}

// Progress returns what tells on standard error what is under way in a subcommand.
func Progress(name string) func(format string, arguments ...any) {
	return func(format string, arguments ...any) {
		fmt.Fprintf(os.Stderr, name+": "+format+"\n", arguments...)
	}
}
