package plugin

import (
	"cmp"

	"github.com/spf13/cobra"
	"k8s.io/client-go/discovery"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/jobferry/jobferry/pkg/plugin/access"
)

func newVersion(c *cli) *cobra.Command {
	var clientOnly bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of the plugin, the hub and its manager",
		Example: templates.Examples(`
			# The plugin's version alone
			kubectl jobferry version --client`),
		Args: positional(0, 0, "no argument"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			fprintf(c.Out, "kubectl-jobferry: %s\n", c.version)
			if clientOnly {
				return nil
			}
			return c.hubVersions(cmd)
		},
	}
	cmd.Flags().BoolVar(&clientOnly, "client", false, "Print only the version of the plugin")
	return cmd
}

func (c *cli) hubVersions(cmd *cobra.Command) error {
	config, err := c.hubConfig()
	if err != nil {
		return err
	}
	api, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	info, err := api.ServerVersion()
	if err != nil {
		return access.Advise(err, "the hub doesn't answer; use --client to omit it")
	}
	fprintf(c.Out, "Hub's Kubernetes: %s\n", info.GitVersion)
	manager, err := c.managerVersion(cmd.Context())
	if err != nil {
		fprintf(c.Out, "jobferry-manager: unknown\n")
		c.say("the hub's manager doesn't say its version: %v", err)
		return nil
	}
	fprintf(c.Out, "jobferry-manager: %s\n", cmp.Or(manager, "unknown"))
	if warning := skewBetween(c.version, manager); warning != "" {
		c.say("warning: %s", warning)
	}
	return nil
}
