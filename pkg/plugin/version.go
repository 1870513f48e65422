package plugin

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"
	"k8s.io/client-go/discovery"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/jobferry/jobferry/pkg/plugin/access"
)

// versions are those of the programs that work together.
type versions struct {
	Plugin string `json:"kubectlJobferry"`
	// Hub is the release of Kubernetes there. Neither is set with --client.
	Hub     string `json:"hubKubernetes,omitempty"`
	Manager string `json:"jobferryManager,omitempty"`
}

func newVersion(c *cli) *cobra.Command {
	var clientOnly bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of the plugin, the hub and its manager",
		Example: templates.Examples(`
			# The plugin's version alone
			kubectl jobferry version --client`),
		Args: positional(0, 0, "no argument"),
	}
	cmd.Flags().BoolVar(&clientOnly, "client", false, "Print only the version of the plugin")
	out := addReport(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		is := versions{Plugin: c.version}
		if !clientOnly {
			if err := c.addHubVersions(cmd.Context(), &is); err != nil {
				return err
			}
		}
		if !out.asText() {
			return out.print(c, is)
		}
		is.write(c)
		return nil
	}
	return cmd
}

func (v versions) write(c *cli) {
	fprintf(c.Out, "kubectl-jobferry: %s\n", v.Plugin)
	if v.Hub != "" {
		fprintf(c.Out, "Hub's Kubernetes: %s\njobferry-manager: %s\n", v.Hub, v.Manager)
	}
}

func (c *cli) addHubVersions(ctx context.Context, v *versions) error {
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
	const unknown = "unknown"
	manager, err := c.managerVersion(ctx)
	v.Hub, v.Manager = info.GitVersion, cmp.Or(manager, unknown)
	if err != nil {
		c.say("the hub's manager doesn't say its version: %v", err)
		return nil
	}
	if warning := skewBetween(c.version, manager); warning != "" {
		c.say("warning: %s", warning)
	}
	return nil
}
