// Package plugin is kubectl-jobferry: what admins and users of a hub do from a terminal. One file
// per verb, and each verb gathers, then renders:
//
//	arguments ─> verb ─┬─ gather: access ──> hub, worker     (objects)
//	                   └─ render: show ────> terminal         (pure, golden files)
//	             register, rotate, unregister:
//	                 registration ─> objects of hub and worker (pure) ─> access
//
// # Vocabulary
//
//   - The hub is the cluster of kubectl's context. Only register, rotate and
//     unregister talk to a worker, with the admin's own credentials there.
//   - Whatever else comes from workers comes through the hub's aggregated API
//     subresources.jobferry.dev, by the rights that the user has on the hub.
//   - A registration is what makes a cluster a worker: ServiceAccount, token and
//     permissions there, Secret and WorkerCluster here.
//
// # Exit codes
//
//	0  done
//	1  it didn't work; standard error says why, and what to do
//	2  the arguments make no sense
//	3  it's under way, but wasn't there when the time was up
//
// exec has the exit code of the command.
package plugin
