package plugin

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/util/templates"
	"k8s.io/utils/clock"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/util/version"
)

// Run runs the plugin, and returns its exit code.
func Run(ctx context.Context, args []string, streams genericiooptions.IOStreams, clock clock.PassiveClock) int {
	return newCLI(streams, clock).run(ctx, args)
}

func (c *cli) run(ctx context.Context, args []string) int {
	root := c.command()
	root.SetArgs(args)
	return finish(root.ExecuteContext(ctx), c.ErrOut)
}

// verbs lists the commands in the order of the help.
var verbs = []struct {
	group, title string
	make         []func(*cli) *cobra.Command
}{
	{"workers", "Register workers:", []func(*cli) *cobra.Command{newRegister, newUnregister, newRotate}},
	{"operate", "Operate:", []func(*cli) *cobra.Command{newClusters, newCordon, newUncordon, newDrain, newTop, newUsage, newDashboard}},
	{"jobs", "Jobs:", []func(*cli) *cobra.Command{newJobs, newDescribe, newWhy, newMove, newPods, newLogs, newEvents, newExec, newAttach, newPortForward, newCopy}},
}

func newCLI(streams genericiooptions.IOStreams, clock clock.PassiveClock) *cli {
	c := &cli{IOStreams: streams, clock: clock, version: version.Get(), hub: genericclioptions.NewConfigFlags(true)}
	c.hub.CacheDir = nil // the plugin needs no discovery
	return c
}

// command makes the plugin's command.
func (c *cli) command() *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-jobferry",
		Short: "Register worker clusters, and see the Jobs that run in them",
		Long: templates.LongDesc(`
			Register worker clusters with a hub, operate them, and see the Jobs that run in them.

			The hub is the cluster of kubectl's context. Pods, logs, events and exec of Jobs go through
			the hub, with your own permissions there: you need no credentials of workers.`),
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl jobferry"},
		Version:       c.version,
		SilenceErrors: true, SilenceUsage: true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return noCommand(cmd, args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	// cobra's own has -v, kubectl's verbosity
	root.Flags().Bool("version", false, "Print the plugin's version")
	root.SetVersionTemplate("{{.Version}}\n") // as the other programs print it
	root.SetIn(c.In)
	root.SetOut(c.Out)
	root.SetErr(c.ErrOut)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usage(cmd, "%w", err) })
	c.hub.AddFlags(root.PersistentFlags())
	// the flags are there
	_ = root.RegisterFlagCompletionFunc("namespace", c.completeNamespaces)
	_ = root.RegisterFlagCompletionFunc("context", c.completeContexts)
	root.PersistentFlags().StringVar(&c.systemNamespace, "system-namespace", v1alpha1.SystemNamespace, "The manager's namespace on the hub")
	for _, group := range verbs {
		root.AddGroup(&cobra.Group{ID: group.group, Title: group.title})
		for _, make := range group.make {
			cmd := make(c)
			cmd.GroupID, cmd.PreRun = group.group, c.warnOfSkew
			root.AddCommand(cmd)
		}
	}
	root.AddCommand(newVersion(c))
	return root
}

// suggestionDistance is how many letters of a mistyped command may be wrong.
const suggestionDistance = 2

// noCommand says that a command isn't there, and which was meant.
func noCommand(root *cobra.Command, name string) error {
	root.SuggestionsMinimumDistance = suggestionDistance
	meant := root.SuggestionsFor(name)
	if len(meant) == 0 {
		return usage(root, "there is no command %q", name)
	}
	return usage(root, "there is no command %q\n\nDid you mean this?\n\t%s\n", name, strings.Join(meant, "\n\t"))
}

// positional checks the number of arguments; most < 0 sets no limit.
func positional(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return usage(cmd, "%s is missing", what)
		case most >= 0 && len(args) > most:
			return usage(cmd, "unexpected argument %q: the command takes %s only", args[most], what)
		default:
			return nil
		}
	}
}

// canceled reports whether the user or a timeout ended it.
func canceled(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
