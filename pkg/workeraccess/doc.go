// Package workeraccess lists what the hub's credentials may do in a worker cluster: one table, with
// the reason for each rule. A new request of Jobferry to a worker needs a row, from which these are
// derived:
//
//	        ┌─> ClusterRole, Role   kubectl jobferry register
//	Rules ──┼─> Table               docs/register.md
//	        └─> tests               what fails with a role without the rule
//
// # Vocabulary
//
//   - A rule is one row: verbs on resources, why, when, and what a user sees without it.
//   - Settings tell how a worker is used. They decide which rules it needs.
//
// # Trade-offs
//
// Most rules hold in all namespaces, because the hub decides in which namespaces there are Jobs,
// and one watch observes the mirrors of all of them. Only the Leases of the fence are in one
// namespace.
//
// A stolen kubeconfig can do in a worker what these rules allow. So the hub can read Secrets only
// where Secrets are carried, and no rule lets its holder extend its own permissions.
package workeraccess
