// Package workeraccess lists what the hub's credentials may do in a worker cluster: one table, with
// the reason for each rule. A new request of Jobferry to a worker needs a row, from which these are
// derived:
//
//	        ┌─> ClusterRole, Roles  kubectl jobferry register
//	Rules ──┼─> Table               docs/how-to/register.md
//	        └─> tests               what fails with a role without the rule
//
// # Vocabulary
//
//   - A rule is one row: verbs on resources, why, when, and what a user sees without it.
//   - Settings tell how a worker is used. They decide which rules it needs.
//
// # Trade-offs
//
// A registration says in which namespaces of the worker the hub may have Jobs: all, or a list. In
// all of them, create on jobs is worth the cluster: a Job runs as any ServiceAccount of its
// namespace, on the node's file system where no admission forbids it. With a list, the rules that
// hold everywhere only read: one watch observes the mirrors of all namespaces. Only the Lease of
// the fence is in Jobferry's own namespace.
//
// A stolen kubeconfig can do in a worker what these rules allow. So the hub can read Secrets only
// where Secrets are carried, and no rule lets its holder extend its own permissions.
package workeraccess
