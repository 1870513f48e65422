// Package admission sets spec.managedBy of new Jobs in dispatched namespaces, on hubs whose API
// server can't do that by a policy.
//
//	                      1.36 and later:  MutatingAdmissionPolicy  jobferry-dispatch
//	Job is created ─▶ hub ─┤
//	                      before:          webhook jobferry-dispatch ─▶ any replica ─▶ review (pure)
//	                  hub ─▶ ValidatingAdmissionPolicy  jobferry-jobs, jobferry-managed-by, jobferry-warnings, jobferry-manager-*
//
// The policies and the webhook's configuration are charts/jobferry/files/admission;
// config/admission has the same for kustomize. This package serves the webhook, and its tests run
// the policies' expressions as the API server does.
//
// # The rule
//
// In a namespace with the label jobferry.dev/dispatch: enabled, a Job that's created without
// spec.managedBy gets jobferry.dev/dispatcher, whichever user creates it. A managedBy that the user
// sets stays: with kubernetes.io/job-controller, a Job runs on the hub. Mirrors that another hub
// creates here aren't changed.
//
// A client that doesn't know the field leaves it out of the Job that it writes back. Admission puts
// jobferry.dev/dispatcher back, in any namespace: the field is immutable, and the API server would
// refuse the update. If no replica answers, it does.
//
// # When no replica answers
//
// The webhook's failurePolicy is Fail: the Job isn't created, and its creator gets an error.
// Otherwise the hub's own Job controller would run the Job, or it would wait for nodes that a hub
// doesn't have. As managedBy is immutable, nothing could repair it. Only dispatched namespaces are
// affected. Every replica responds, not only the leader; see the chart's PodDisruptionBudget.
//
// # Trade-offs
//
// The manager has no validating webhook: all supported hubs have validating policies, which work
// without a running manager. CEL has no label selectors. Their grammar is regular, so the policy
// has it as a regular expression, which a property test compares with the parser.
package admission
