package plugin

import (
	"context"
	"os"
	"sync"
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
)

// cli is what all verbs share.
type cli struct {
	genericiooptions.IOStreams
	clock clock.PassiveClock
	// version is the plugin's.
	version string
	hub     *genericclioptions.ConfigFlags
	// systemNamespace is the manager's.
	systemNamespace string
}

// hubConfig returns how the hub is reached, by kubectl's rules.
func (c *cli) hubConfig() (*rest.Config, error) {
	config, err := c.hub.ToRESTConfig()
	if err != nil {
		return nil, access.Advise(err, "the hub is the cluster of kubectl's context: see kubectl config current-context, or set --context")
	}
	return c.tuned(config), nil
}

// tuned sets our name, and lifts client-go's limit of 5 requests a second. The API server limits
// requests by itself, and a limiter here says at the end of a timeout that it's the limiter's.
func (c *cli) tuned(config *rest.Config) *rest.Config {
	config.UserAgent = "kubectl-jobferry/" + c.version
	config.QPS = -1
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

// subresources makes a client of what belongs to a Job of the namespace.
func (c *cli) subresources(job string) (*access.Subresources, error) {
	config, err := c.hubConfig()
	if err != nil {
		return nil, err
	}
	namespace, err := c.namespace()
	if err != nil {
		return nil, err
	}
	return access.NewSubresources(config, types.NamespacedName{Namespace: namespace, Name: jobName(job)})
}

// namespace returns the namespace of Jobs, by kubectl's rules.
func (c *cli) namespace() (string, error) {
	namespace, _, err := c.hub.ToRawKubeConfigLoader().Namespace()
	return namespace, err
}

func (c *cli) palette() show.Palette {
	return paletteFor(term.TTY{Out: c.Out}.IsTerminalOut(), os.Getenv)
}

// paletteFor returns colours for a terminal, unless its user has turned them off, see
// https://no-color.org.
func paletteFor(terminal bool, env func(string) string) show.Palette {
	if !terminal || env("NO_COLOR") != "" || env("TERM") == "dumb" {
		return nil
	}
	return show.Colours()
}

func (c *cli) now() time.Time { return c.clock.Now() }

// say reports progress on standard error.
func (c *cli) say(format string, args ...any) {
	fprintf(c.ErrOut, format+"\n", args...)
}

// sayNew returns a function that reports a text when it differs from the last one.
func (c *cli) sayNew(prefix string) func(text string) {
	var mu sync.Mutex
	last := ""
	return func(text string) {
		mu.Lock()
		defer mu.Unlock()
		if text != "" && text != last {
			c.say("%s%s", prefix, text)
			last = text
		}
	}
}

// pollInterval is how often a verb that waits asks the hub. Unlike a watch, a poll survives a
// broken connection, and it reads one object.
const pollInterval = 500 * time.Millisecond

// limit adds a timeout to a command's context; zero adds none.
func limit(cmd *cobra.Command, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout <= 0 {
		return context.WithCancel(cmd.Context())
	}
	return context.WithTimeout(cmd.Context(), timeout)
}
