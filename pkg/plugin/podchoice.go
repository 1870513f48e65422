package plugin

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/jobferry/jobferry/pkg/plugin/access"
	"github.com/jobferry/jobferry/pkg/plugin/show"
)

// podFlags say which Pod of a Job is meant.
type podFlags struct {
	pod   string
	index int
}

func (p *podFlags) add(c *cli, cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.pod, "pod", "", "Name of the Pod")
	cmd.Flags().IntVar(&p.index, "index", -1, "Completion index, of an Indexed Job: its newest Pod")
	_ = cmd.RegisterFlagCompletionFunc("pod", c.completePods) // the flag is there
}

func (p *podFlags) given() bool { return p.pod != "" || p.index >= 0 }

func (p *podFlags) check(cmd *cobra.Command) error {
	switch {
	case p.pod != "" && cmd.Flags().Changed("index"):
		return usage(cmd, "--pod or --index, not both")
	case cmd.Flags().Changed("index") && p.index < 0:
		return usage(cmd, "--index %d: it must be 0 or more", p.index)
	default:
		return nil
	}
}

func (p *podFlags) choice(cmd *cobra.Command) access.PodChoice {
	choice := access.PodChoice{Pod: strings.TrimPrefix(p.pod, "pod/")}
	if cmd.Flags().Changed("index") {
		choice.Index = &p.index
	}
	return choice
}

// completePods completes the names of the Pods of the Job in the arguments.
func (c *cli) completePods(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	_, subresources, err := c.clients()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	key, err := c.key(args[0])
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	pods, err := subresources.Pods(ctx, key)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []string
	for _, pod := range show.SortedPods(pods.Items) {
		if strings.HasPrefix(pod.Name, begun) {
			names = append(names, pod.Name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
