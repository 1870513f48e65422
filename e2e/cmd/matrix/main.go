// Command matrix runs the main stories for pairs of Kubernetes releases, and writes the page that
// says which features work with which pair. See package matrix.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/jobferry/jobferry/e2e/matrix"
	"github.com/jobferry/jobferry/e2e/matrix/table"
)

func main() {
	o, page, known := matrix.DefaultOptions(), "", false
	flag.Func("hub", "releases of the hub, separated by spaces; default: "+strings.Join(o.Hubs, " "), list(&o.Hubs))
	flag.Func("worker", "releases of the workers; default: "+strings.Join(o.Workers, " "), list(&o.Workers))
	flag.StringVar(&o.Results, "results", "", "folder that results are kept in: what has passed there isn't run again")
	flag.StringVar(&page, "page", "", "file to write the page to; default: standard output")
	flag.BoolVar(&known, "known", false, "run nothing: write the page from the results that there are")
	flag.IntVar(&o.Parallel, "parallel", o.Parallel, "test packages at a time")
	flag.DurationVar(&o.TimeLimit, "time-limit", o.TimeLimit, "time limit of one test package")
	flag.Parse()
	o.Progress = func(format string, arguments ...any) {
		fmt.Fprintf(os.Stderr, "matrix: "+format+"\n", arguments...)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o, page, known); err != nil {
		fmt.Fprintln(os.Stderr, "matrix:", err)
		os.Exit(1)
	}
}

func list(into *[]string) func(string) error {
	return func(s string) error {
		*into = matrix.ParseReleases(s)
		return nil
	}
}

func run(ctx context.Context, o matrix.Options, page string, known bool) error {
	t, err := tabulate(ctx, o, known)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := t.Markdown(&text); err != nil {
		return err
	}
	if page == "" {
		_, err = os.Stdout.Write(text.Bytes())
	} else {
		err = os.WriteFile(page, text.Bytes(), 0o644)
	}
	if err != nil {
		return err
	}
	if n := t.Failed(); n > 0 {
		return fmt.Errorf("%d cells of the table say no; run it again to try these tests again", n)
	}
	return nil
}

func tabulate(ctx context.Context, o matrix.Options, known bool) (*table.Table, error) {
	if known {
		return matrix.Known(o)
	}
	return matrix.Run(ctx, o)
}
