// Package workeraccess lists what the hub's credentials may do in a worker cluster: one table, with
// the reason for each rule. Whoever has Jobferry do something new in a worker adds a row, and the
// rest follows:
//
//	        ┌─> ClusterRole, Role   kubectl jobferry register
//	Rules ──┼─> Table               docs/register.md
//	        └─> tests               a role without the rule: what then fails
//
// # Vocabulary
//
//   - A rule is one row: verbs on resources, why, when, and what shows without it.
//   - Settings say what a worker is used for: rules that nothing needs aren't given.
//   - Scope: Jobs run in any namespace, so most rules hold in all of them. Only
//     the Leases of the fence have a namespace of their own.
//
// # Trade-offs
//
// Rules hold in all namespaces, because the hub decides in which namespaces there are Jobs, and one
// watch brings the mirrors of all of them.
//
// What is given in a worker is what a stolen kubeconfig can do there. So the contents of Secrets
// are readable only where Secrets are carried, and nothing here lets its holder give itself more.
package workeraccess
