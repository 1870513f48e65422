package plugin

import (
	"github.com/spf13/cobra"
	"k8s.io/client-go/discovery"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/jobferry/jobferry/pkg/plugin/access"
	"github.com/jobferry/jobferry/pkg/version"
)

func newVersion(c *cli) *cobra.Command {
	var clientOnly bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of the plugin and the hub",
		Example: templates.Examples(`
			# The plugin's version alone
			kubectl jobferry version --client`),
		Args: positional(0, 0, "no argument"),
		RunE: func(*cobra.Command, []string) error {
			fprintf(c.Out, "kubectl-jobferry: %s\n", version.Get())
			if clientOnly {
				return nil
			}
			return c.hubVersion()
		},
	}
	cmd.Flags().BoolVar(&clientOnly, "client", false, "Print only the version of the plugin")
	return cmd
}

func (c *cli) hubVersion() error {
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
	return nil
}
