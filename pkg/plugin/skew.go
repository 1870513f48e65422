package plugin

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	utilversion "k8s.io/apimachinery/pkg/util/version"

	"github.com/jobferry/jobferry/pkg/plugin/access"
	"github.com/jobferry/jobferry/pkg/util/text"
)

const (
	// maxSkew is how many minor releases the plugin and the manager may be apart.
	maxSkew = 1
	// skewTimeout bounds the question for the manager's version, which no verb needs.
	skewTimeout = 2 * time.Second
	// longestVersion is more than any version of ours has.
	longestVersion = 64
)

// warnOfSkew is called before each verb. If the manager's version can't be known, the verb itself
// will say why.
func (c *cli) warnOfSkew(cmd *cobra.Command, _ []string) {
	manager, err := c.managerVersion(cmd.Context())
	if err != nil {
		return
	}
	if warning := skewBetween(c.version, manager); warning != "" {
		c.say("warning: %s", warning)
	}
}

func (c *cli) managerVersion(ctx context.Context) (string, error) {
	config, err := c.hubConfig()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, skewTimeout)
	defer cancel()
	manager, err := access.ManagerVersion(ctx, config)
	return text.Clean(manager, longestVersion), err
}

// skewBetween returns why a plugin may not work with a manager, by their versions; empty: it does.
// Development builds have no place in the order of releases.
func skewBetween(plugin, manager string) string {
	p, err := utilversion.ParseSemantic(plugin)
	if err != nil || isDevelopment(p) {
		return ""
	}
	if manager == "" {
		return fmt.Sprintf("the hub's jobferry-manager doesn't say its version: it's older than any release, and this plugin is %s. Upgrade Jobferry on the hub", plugin)
	}
	m, err := utilversion.ParseSemantic(manager)
	if err != nil {
		return fmt.Sprintf("the hub's jobferry-manager says that its version is %q, which is no semantic version", manager)
	}
	if isDevelopment(m) || p.Major() == m.Major() && distance(p.Minor(), m.Minor()) <= maxSkew {
		return ""
	}
	return fmt.Sprintf("the plugin is %s, and the hub's jobferry-manager is %s: more than one minor release apart, so commands may fail or show less. Use a plugin of v%d.%d",
		plugin, manager, m.Major(), m.Minor())
}

func isDevelopment(v *utilversion.Version) bool {
	return v.Major() == 0 && v.Minor() == 0 && v.Patch() == 0
}

func distance(a, b uint) uint { return max(a, b) - min(a, b) }
