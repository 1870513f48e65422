// Package command is what the programs that measure have in common: the flags for the figures and the
// goals, how progress is told, and how it ends.
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
	"strings"
	"syscall"
)

// Command is a program that measures an R.
type Command[R any] struct {
	Name string
	// Run measures, after the flags were parsed.
	Run      func(context.Context) (*R, error)
	Markdown func(io.Writer, *R) error
	// Worse is in what the result is worse than what it was compared with, which always is an error.
	// Nil: it's compared with nothing.
	Worse func(*R) []string
	// Missed are the goals that were missed, which with -check is an error.
	Missed func(*R) []string
}

// Main parses the flags, measures, and prints the figures as Markdown. It doesn't return after an error.
func (c Command[R]) Main() {
	file := flag.String("json", "", "file to write the figures to, as JSON")
	check := flag.Bool("check", false, "exit with an error if a goal is missed")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := c.run(ctx, *file, *check); err != nil {
		fmt.Fprintln(os.Stderr, c.Name+":", err)
		os.Exit(1)
	}
}

func (c Command[R]) run(ctx context.Context, file string, check bool) error {
	result, err := c.Run(ctx)
	if err != nil {
		return err
	}
	if err := c.Markdown(os.Stdout, result); err != nil {
		return err
	}
	if file != "" {
		text, err := json.MarshalIndent(result, "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(file, append(text, '\n'), 0o644); err != nil {
			return err
		}
	}
	if c.Worse != nil {
		if worse := c.Worse(result); len(worse) > 0 {
			return errors.New("worse than the base: " + strings.Join(worse, "; "))
		}
	}
	if missed := c.Missed(result); check && len(missed) > 0 {
		return errors.New("goals missed: " + strings.Join(missed, "; "))
	}
	return nil
}

// Progress tells on standard error what is under way.
func (c Command[R]) Progress(format string, arguments ...any) {
	fmt.Fprintf(os.Stderr, c.Name+": "+format+"\n", arguments...)
}

// ManagerFlags adds the flag for those of the manager.
func ManagerFlags(flags *[]string) {
	flag.Func("manager-flag", "flag for the manager, such as --log-level=debug; may be repeated", func(s string) error {
		*flags = append(*flags, s)
		return nil
	})
}
