package plugin

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/kubectl/pkg/util/term"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/plugin/access"
	"github.com/jobferry/jobferry/pkg/plugin/show"
	"github.com/jobferry/jobferry/pkg/version"
)

// cli is what all verbs share.
type cli struct {
	genericiooptions.IOStreams
	clock clock.PassiveClock
	hub   *genericclioptions.ConfigFlags
	// systemNamespace is the manager's.
	systemNamespace string
}

// hubConfig finds the hub by kubectl's rules.
func (c *cli) hubConfig() (*rest.Config, error) {
	config, err := c.hub.ToRESTConfig()
	if err != nil {
		return nil, access.Advise(err, "the hub is the cluster of kubectl's context: see kubectl config current-context, or set --context")
	}
	return c.tuned(config), nil
}

// tuned is a configuration with our name, without client-go's brake of 5 requests a second.
func (c *cli) tuned(config *rest.Config) *rest.Config {
	config.UserAgent = "kubectl-jobferry/" + version.Get()
	config.QPS, config.Burst = 50, 300
	config.WarningHandler = rest.NewWarningWriter(c.ErrOut, rest.WarningWriterOptions{Deduplicate: true})
	return config
}

// hubClient makes a client of the hub.
func (c *cli) hubClient() (client.Client, error) {
	config, err := c.hubConfig()
	if err != nil {
		return nil, err
	}
	return access.NewClient(config)
}

// clients makes both clients of the hub.
func (c *cli) clients() (client.Client, *access.Subresources, error) {
	config, err := c.hubConfig()
	if err != nil {
		return nil, nil, err
	}
	hub, err := access.NewClient(config)
	if err != nil {
		return nil, nil, err
	}
	subresources, err := access.NewSubresources(config)
	return hub, subresources, err
}

// namespace is the one of the Jobs that are meant.
func (c *cli) namespace() (string, error) {
	namespace, _, err := c.hub.ToRawKubeConfigLoader().Namespace()
	return namespace, err
}

// key is a Job of that namespace.
func (c *cli) key(job string) (types.NamespacedName, error) {
	namespace, err := c.namespace()
	return types.NamespacedName{Namespace: namespace, Name: jobName(job)}, err
}

func (c *cli) palette() show.Palette {
	return paletteFor(term.TTY{Out: c.Out}.IsTerminalOut(), os.Getenv)
}

// paletteFor has colours for a terminal whose user didn't say no to them, see https://no-color.org.
func paletteFor(terminal bool, env func(string) string) show.Palette {
	if !terminal || env("NO_COLOR") != "" || env("TERM") == "dumb" {
		return nil
	}
	return show.Colours()
}

func (c *cli) now() time.Time { return c.clock.Now() }

// say tells of progress, on standard error. Much of it is what others say.
func (c *cli) say(format string, args ...any) {
	fprintf(c.ErrOut, "%s\n", show.Printable(fmt.Sprintf(format, args...)))
}

// pollInterval is how often the hub is asked while a verb waits. A poll outlives a connection that
// breaks, and the wait is for one object.
const pollInterval = 500 * time.Millisecond

// limit bounds a context; zero: no limit.
func limit(cmd *cobra.Command, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout <= 0 {
		return context.WithCancel(cmd.Context())
	}
	return context.WithTimeout(cmd.Context(), timeout)
}
