// Package plugin is kubectl-jobferry, the commands for admins and users of a hub. Each verb has a
// file, and gathers before it renders:
//
//	arguments ─> verb ─┬─ gather: access ──> hub, worker     (objects)
//	                   └─ render: show ────> terminal         (pure, golden files)
//	             dashboard: hub, view, templates ────> browser
//	             register, rotate, unregister:
//	                 registration ─> objects of hub and worker (pure) ─> access
//
// # Vocabulary
//
//   - The hub is the cluster of kubectl's context. Only register, rotate and
//     unregister talk to a worker, with the admin's own credentials there.
//   - All other verbs read from workers through the hub's aggregated API
//     subresources.jobferry.dev, with the permissions that the user has on the hub.
//   - A registration is what makes a cluster a worker: ServiceAccount, token and
//     permissions there, Secret and WorkerCluster here.
//
// # Exit codes
//
//	0  done
//	1  it failed; standard error says why, and what to do
//	2  the arguments are invalid
//	3  it continues, but wasn't done before the timeout
//
// exec has the exit code of the command.
package plugin
