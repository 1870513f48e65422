// Package subresources tests the aggregated API for a Job's Pods, logs, events, mirror and commands
// on real API servers: a hub whose API server aggregates it, and workers whose simulated Pods have
// logs and run commands.
//
// The server runs in a manager of its own beside the one that dispatches, as in a replica that
// doesn't lead, and as a user of the hub with only the server's own permissions.
package subresources
