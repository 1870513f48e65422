// Package admission tests how Jobs become Jobferry's when they're created, and what is refused
// then, on real API servers with the files that kustomize installs.
//
//	hub: 1.36   MutatingAdmissionPolicy, ValidatingAdmissionPolicies
//	old: 1.34   webhook of jobferry-manager, ValidatingAdmissionPolicies
//
// # How the API server reaches the webhook
//
// Through the Service of the webhook's configuration, as in a cluster, but the Service is an
// ExternalName of loopback, where a front forwards each connection to one of the managers. The
// front can hang up: then the next request makes a new connection, and so meets the certificate
// that's served now.
package admission
