package plugin

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/jobferry/jobferry/pkg/plugin/access"
	"github.com/jobferry/jobferry/pkg/plugin/show"
)

func newPods(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pods JOB",
		Short: "Show the Pods of a Job, as they are in its workers",
		Example: templates.Examples(`
			kubectl jobferry pods pi

			# With their nodes
			kubectl jobferry pods pi -o wide`),
		Args:              positional(1, 1, "a JOB"),
		ValidArgsFunction: c.completeJobs(1),
	}
	out := addOutput(cmd)
	worker := c.addWorker(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		subresources, job, err := c.subresourcesOf(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		pods, err := subresources.PodsOf(cmd.Context(), askedWorkers(job, workerName(*worker)))
		if err != nil {
			return err
		}
		if out.asTable() {
			err = c.table(show.Pods(pods.Items, c.now(), out.format() == wide), fmt.Sprintf("The Job %s has no Pods now.", subresources.Job.Name))
		} else {
			err = out.print(c, &corev1.PodList{ListMeta: pods.ListMeta, Items: pods.Items})
		}
		return cmp.Or(err, c.incomplete("Pods of the Job "+subresources.Job.Name, pods.Warnings))
	}
	return cmd
}

// addWorker adds the flag that selects one worker of a Job that runs in several.
func (c *cli) addWorker(cmd *cobra.Command) *string {
	worker := cmd.Flags().String("worker", "", "Only in this worker, of a Job that runs in several")
	_ = cmd.RegisterFlagCompletionFunc("worker", c.completeWorkers(-1)) // the flag is there
	return worker
}

// incomplete reports what a list lacks, and returns an error if that's anything.
func (c *cli) incomplete(what string, warnings []string) error {
	for _, warning := range warnings {
		c.say("warning: %s", warning)
	}
	if len(warnings) > 0 {
		return fmt.Errorf("not all %s could be read", what)
	}
	return nil
}

// podFlags choose a Pod of a Job.
type podFlags struct {
	pod    string
	index  int
	worker *string
}

func (p *podFlags) add(c *cli, cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.pod, "pod", "", "Name of the Pod")
	cmd.Flags().IntVar(&p.index, "index", -1, "Completion index of an Indexed Job: use the newest Pod of this index")
	_ = cmd.RegisterFlagCompletionFunc("pod", c.completePods) // the flags are there
	_ = cmd.RegisterFlagCompletionFunc("index", c.completeIndexes)
	p.worker = c.addWorker(cmd)
	alsoCheck(cmd, p.check)
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
	choice := access.PodChoice{Pod: strings.TrimPrefix(p.pod, "pod/"), Worker: workerName(*p.worker)}
	if cmd.Flags().Changed("index") {
		choice.Index = &p.index
	}
	return choice
}

// completePods completes the names of the Pods of the Job in the arguments.
func (c *cli) completePods(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	return complete(cmd, begun, func(ctx context.Context) ([]string, error) {
		if len(args) == 0 {
			return nil, nil
		}
		subresources, err := c.subresources(args[0])
		if err != nil {
			return nil, err
		}
		pods, err := subresources.Pods(ctx, "")
		return namesOf(show.SortedPods(pods.Items)), err
	})
}
