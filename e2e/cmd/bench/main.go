// Command bench measures Jobferry on real API servers, and prints the figures as Markdown. Each
// subcommand is a kind of measurement. See packages bench and bench/controllers.
package main

import (
	"context"
	"flag"
	"io"

	"github.com/jobferry/jobferry/e2e/bench"
	"github.com/jobferry/jobferry/e2e/bench/command"
	"github.com/jobferry/jobferry/e2e/bench/controllers"
	"github.com/jobferry/jobferry/e2e/bench/report"
)

func main() { command.Main("bench", flood(), scale(), soak(), span(), worker()) }

func flood() command.Command[report.Result] {
	o := bench.DefaultFloodOptions()
	o.Progress = command.Progress("bench flood")
	return command.Command[report.Result]{
		Name: "flood", Summary: "many Jobs at once, beside plain Jobs in one cluster",
		Flags: func(f *flag.FlagSet) { floodFlags(f, &o) },
		Run:   func(ctx context.Context) (*report.Result, error) { return bench.RunFlood(ctx, o) },
		Markdown: func(out io.Writer, r *report.Result) error {
			if o.Against != "" || o.Pods {
				return report.AgainstMarkdown(out, r)
			}
			return report.Markdown(out, r)
		},
		Worse: report.Worse, Missed: report.Missed,
	}
}

func scale() command.Command[report.Scale] {
	o := bench.DefaultScaleOptions()
	o.Progress = command.Progress("bench scale")
	return command.Command[report.Scale]{
		Name: "scale", Summary: "a real hub and many simulated workers",
		Flags:    func(f *flag.FlagSet) { scaleFlags(f, &o) },
		Run:      func(ctx context.Context) (*report.Scale, error) { return bench.RunScale(ctx, o) },
		Markdown: report.ScaleMarkdown, Missed: (*report.Scale).MissedGoals,
	}
}

func soak() command.Command[report.Soak] {
	o := bench.DefaultSoakOptions()
	o.Progress = command.Progress("bench soak")
	return command.Command[report.Soak]{
		Name: "soak", Summary: "managers under steady load: whether their memory grows, and what is late or lost",
		Flags:    func(f *flag.FlagSet) { soakFlags(f, &o) },
		Run:      func(ctx context.Context) (*report.Soak, error) { return bench.RunSoak(ctx, o) },
		Markdown: report.SoakMarkdown, Missed: (*report.Soak).MissedGoals,
	}
}

func span() command.Command[report.Span] {
	o := bench.DefaultSpanOptions()
	o.Progress = command.Progress("bench span")
	return command.Command[report.Span]{
		Name: "span", Summary: "one Job over several workers, of which one is drained and one is lost, beside one cluster",
		Flags:    func(f *flag.FlagSet) { spanFlags(f, &o) },
		Run:      func(ctx context.Context) (*report.Span, error) { return bench.RunSpan(ctx, o) },
		Markdown: report.SpanMarkdown, Missed: report.MissedOf,
	}
}

func worker() command.Command[controllers.Result] {
	o := controllers.DefaultOptions()
	o.Progress = command.Progress("bench worker")
	return command.Command[controllers.Result]{
		Name: "worker", Summary: "the embedded Job controller beside the built-in",
		Flags: func(f *flag.FlagSet) {
			f.Float64Var(&o.Scale, "scale", o.Scale, "size of the loads, 1 for the whole")
			f.StringVar(&o.Workers, "workers", o.Workers, "numbers of Jobs that are synced at a time, in the loads")
			f.IntVar(&o.Rounds, "rounds", o.Rounds, "how often each contender runs, by turns")
			f.StringVar(&o.Rows, "rows", o.Rows, "only the loads whose name contains this")
		},
		Run:      func(ctx context.Context) (*controllers.Result, error) { return controllers.Run(ctx, o) },
		Markdown: controllers.Markdown,
	}
}
