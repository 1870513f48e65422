package plugin

import (
	"cmp"
	"context"
	"net"
	"strconv"

	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/kubectl/pkg/util/templates"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/plugin/access"
	"github.com/jobferry/jobferry/pkg/plugin/dashboard"
	"github.com/jobferry/jobferry/pkg/plugin/dashboard/hub"
)

func newDashboard(c *cli) *cobra.Command {
	var port int
	cmd := &cobra.Command{
		Use:   "dashboard",
		Short: "Serve web pages on this machine: workers, Jobs, timelines, indexes and logs, live",
		Long: templates.LongDesc(`
			Serve web pages for your browser on this machine, until you press Ctrl-C: the workers, all Jobs with search and
			filters, and for each Job its timeline, indexes, Pods, logs and events, live.

			The pages show what your kubeconfig and your permissions on the hub allow, and change nothing there. The server
			listens on 127.0.0.1 only. The printed address has a token: whoever knows it and can use this machine sees what you
			see.

			Without -n, the pages show the Jobs of all namespaces if you may list them, else those of the context's namespace.`),
		Example: templates.Examples(`
			kubectl jobferry dashboard

			# The Jobs of one namespace, at an address that stays
			kubectl jobferry dashboard -n team-a --port 8700`),
		Args: positional(0, 0, "no argument"),
		RunE: func(cmd *cobra.Command, _ []string) error { return c.dashboard(cmd.Context(), port) },
	}
	cmd.Flags().IntVar(&port, "port", 0, "Port on 127.0.0.1 (default: a free one)")
	return cmd
}

func (c *cli) dashboard(ctx context.Context, port int) error {
	namespace, err := c.dashboardNamespace(ctx)
	if err != nil {
		return err
	}
	config, err := c.hubConfig()
	if err != nil {
		return err
	}
	source, err := hub.New(config, namespace, c.clock)
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return access.Advise(err, "choose another port by --port, or leave it out")
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	go source.Run(running)
	server := dashboard.New(source, dashboard.Options{HubName: cmp.Or(c.context(), "hub"), Flags: c.hubFlags(), Clock: clock.RealClock{}})
	fprintf(c.Out, "%s\n", server.URL(listener))
	c.say("Open this address in your browser. Ctrl-C stops the dashboard.")
	return server.Serve(running, listener)
}

// dashboardNamespace is the namespace whose Jobs are shown: -n, or, where all may be listed, none,
// or the context's.
func (c *cli) dashboardNamespace(ctx context.Context) (string, error) {
	own, err := c.namespace()
	if err != nil || ptr.Deref(c.hub.Namespace, "") != "" {
		return own, err
	}
	reader, err := c.hubClient()
	if err != nil {
		return "", err
	}
	err = reader.List(ctx, &batchv1.JobList{}, client.Limit(1))
	if apierrors.IsForbidden(err) {
		c.say("You may not list the Jobs of all namespaces: the dashboard shows those of %s.", own)
		return own, nil
	}
	return "", access.Explain(err)
}

// context is the name of the kubeconfig's context; empty: it has none.
func (c *cli) context() string {
	config, _ := c.hub.ToRawKubeConfigLoader().RawConfig() // one that can't be read has none
	return cmp.Or(ptr.Deref(c.hub.Context, ""), config.CurrentContext)
}

// hubFlags lead to the same hub in another shell.
func (c *cli) hubFlags() (flags []string) {
	if file := ptr.Deref(c.hub.KubeConfig, ""); file != "" {
		flags = append(flags, "--kubeconfig", file)
	}
	if context := c.context(); context != "" {
		flags = append(flags, "--context", context)
	}
	return flags
}
