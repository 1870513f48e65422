package plugin

import (
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubectl/pkg/util/templates"
	"k8s.io/utils/ptr"
)

type logsFlags struct {
	choice       podFlags
	options      corev1.PodLogOptions
	allPods      bool
	prefix       bool
	tail         int64
	limitBytes   int64
	since        time.Duration
	sinceTime    string
	maxFollow    int
	startTimeout time.Duration
}

func newLogs(c *cli) *cobra.Command {
	f := &logsFlags{}
	cmd := &cobra.Command{
		Use:     "logs JOB",
		Aliases: []string{"log"},
		Short:   "Print the logs of a Job's Pods, through the hub",
		Long: templates.LongDesc(`
			Print the logs of a Job's Pods, from its workers, through the hub. By default, logs prints the log of the newest
			Pod that has started; with -f, it waits for one, also of a Job that waits for a worker. You need permission to
			get jobs/log of subresources.jobferry.dev on the hub.`),
		Example: templates.Examples(`
			# Follow the newest Pod
			kubectl jobferry logs pi -f

			# One index of an Indexed Job, the last 20 lines
			kubectl jobferry logs shards --index 7 --tail 20

			# All Pods, each line with its Pod
			kubectl jobferry logs shards --all-pods`),
		Args:              positional(1, 1, "a JOB"),
		ValidArgsFunction: c.completeJobs(1),
		RunE:              func(cmd *cobra.Command, args []string) error { return c.logs(cmd, f, args[0]) },
	}
	f.add(c, cmd)
	return cmd
}

func (f *logsFlags) add(c *cli, cmd *cobra.Command) {
	f.choice.add(c, cmd)
	set := cmd.Flags()
	set.BoolVar(&f.allPods, "all-pods", false, "Print the logs of all Pods of the Job, and set --prefix")
	set.BoolVar(&f.prefix, "prefix", false, "Begin each line with its Pod and container")
	addContainer(cmd, &f.options.Container)
	set.BoolVarP(&f.options.Follow, "follow", "f", false, "Follow the log until the container ends")
	set.BoolVarP(&f.options.Previous, "previous", "p", false, "Print the log of the container's previous run")
	set.BoolVar(&f.options.Timestamps, "timestamps", false, "Begin each line with its time")
	set.Int64Var(&f.tail, "tail", -1, "Print only this many lines from the end of the log (-1: all lines)")
	set.Int64Var(&f.limitBytes, "limit-bytes", 0, "Print at most this many bytes of each container")
	set.DurationVar(&f.since, "since", 0, "Print only lines newer than this duration, such as 5s, 2m or 3h")
	set.StringVar(&f.sinceTime, "since-time", "", "Print only lines after this time (RFC 3339)")
	set.DurationVar(&f.startTimeout, "pod-running-timeout", 0, "How long -f waits for the container to start (default: without limit)")
	set.IntVar(&f.maxFollow, "max-log-requests", 20, "How many Pods -f with --all-pods can follow at once")
	alsoCheck(cmd, f.complete)
}

// complete checks the flags, and turns them into options.
func (f *logsFlags) complete(cmd *cobra.Command) error {
	switch {
	case f.allPods && f.choice.given():
		return usage(cmd, "--all-pods can't be used with --pod or --index")
	case f.since != 0 && f.sinceTime != "":
		return usage(cmd, "--since or --since-time, not both")
	case f.since < 0:
		return usage(cmd, "--since %s: it must be more than 0", f.since)
	case f.tail < -1:
		return usage(cmd, "--tail %d: it must be -1 (all) or more", f.tail)
	case f.limitBytes < 0:
		return usage(cmd, "--limit-bytes %d: it must be more than 0", f.limitBytes)
	}
	if f.tail >= 0 {
		f.options.TailLines = &f.tail
	}
	if f.limitBytes > 0 {
		f.options.LimitBytes = &f.limitBytes
	}
	if f.since > 0 {
		f.options.SinceSeconds = ptr.To(max(int64(f.since.Round(time.Second).Seconds()), 1))
	}
	if f.sinceTime != "" {
		at, err := time.Parse(time.RFC3339, f.sinceTime)
		if err != nil {
			return usage(cmd, "--since-time: %w", err)
		}
		f.options.SinceTime = ptr.To(metav1.NewTime(at))
	}
	return nil
}

func (c *cli) logs(cmd *cobra.Command, f *logsFlags, name string) error {
	subresources, job, err := c.subresourcesOf(cmd.Context(), name)
	if err != nil {
		return err
	}
	f.options.Container = c.containerFor(job, f.options.Container, false)
	start := c.startOf(subresources, f)
	if f.allPods {
		return c.logsOfAll(cmd, start, f)
	}
	stream := logStream{start: start, choice: f.choice.choice(cmd), options: &f.options}
	if f.prefix {
		return c.logsWithPrefix(cmd.Context(), stream)
	}
	return stream.copyTo(cmd.Context(), c.Out)
}
