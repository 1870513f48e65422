// Package admission makes Jobs of dispatched namespaces Jobferry's when they're created, on hubs
// whose API server can't do that by itself.
//
//	                      1.36 and later:  MutatingAdmissionPolicy  jobferry-dispatch
//	Job is created ─▶ hub ─┤
//	                      before:          webhook jobferry-dispatch ─▶ any replica ─▶ Review (pure)
//	                  hub ─▶ ValidatingAdmissionPolicy  jobferry-jobs, jobferry-managed-by
//
// The policies and the webhook's configuration are charts/jobferry/files/admission;
// config/admission has the same for kustomize. This package serves the webhook, and its tests run
// the policies' expressions as the API server does.
//
// # The rule
//
// In a namespace with the label jobferry.dev/dispatch: enabled, a Job that's created without
// spec.managedBy gets jobferry.dev/dispatcher, whoever creates it. A managedBy of the user's stays:
// kubernetes.io/job-controller is how to have a Job run on the hub. Mirrors that another hub
// creates here are left alone.
//
// # When no replica answers
//
// The webhook's failurePolicy is Fail: the Job isn't created, and its creator is told so. If it
// were let through, the hub's own Job controller would run it, or it would wait for nodes that a
// hub doesn't have; managedBy is immutable, so nothing could mend it. Only dispatched namespaces
// are affected. Any replica answers, not only the leader; see the chart's PodDisruptionBudget.
//
// # Trade-offs
//
// The manager has no validating webhook: what is to be refused is refused by policies that all
// supported hubs have, so that no Job depends on a running manager for it. CEL knows no label
// selectors; their grammar is regular, so the policy has it as a regular expression, held against
// the parser by a property test.
package admission
