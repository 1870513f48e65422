// Package clients has clients that know nothing of Jobferry use a hub, as they are: kubectl,
// Debian's Python client, and, in its package terraform, Terraform.
//
// Their namespaces have the label with which admission gives all new Jobs to the dispatcher,
// because such clients don't know spec.managedBy. docs/clients.md says what clients make of our
// conditions.
package clients
