package subresources

import (
	"context"
	"fmt"
	"strconv"

	"github.com/jobferry/jobferry/pkg/util/version"
)

// maxAgentUser bounds a user's name in the User-Agent, in bytes before they are escaped. With it,
// and the bounds of Kubernetes' own names, the header fits into what an audit log keeps: 1,024
// bytes.
const maxAgentUser = 128

type agentKey struct{}

// onBehalf returns a context whose requests to a worker name the hub's user and Job in their
// User-Agent, and so in the worker's audit log.
func onBehalf(ctx context.Context, req *request) context.Context {
	return context.WithValue(ctx, agentKey{}, agent(req))
}

// agent is such as: jobferry-manager/v1.2.3 (user "alice"; job team-a/pi). Users may have any name:
// it's quoted, and all but printable ASCII escaped, as in Go.
func agent(req *request) string {
	name := req.user.GetName()
	if len(name) > maxAgentUser {
		name = name[:maxAgentUser] + "…"
	}
	return fmt.Sprintf("jobferry-manager/%s (user %s; job %s)", version.Get(), strconv.QuoteToASCII(name), req.key)
}

// agentOf returns the User-Agent of a context; empty: that of the manager.
func agentOf(ctx context.Context) string {
	agent, _ := ctx.Value(agentKey{}).(string)
	return agent
}
