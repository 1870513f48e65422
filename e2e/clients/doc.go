// Package clients has clients that know nothing of Jobferry use a hub, as they are: kubectl,
// Debian's Python client, and, in packages of their own, Terraform and Helm 4. Others are played,
// request by request: k9s, Ansible, Airflow, Nextflow and KEDA.
//
// Their namespaces have the label with which admission gives all new Jobs to the dispatcher,
// because such clients don't know spec.managedBy. Those that look for a Job's Pods are tried twice:
// before the hub shows Pods, and then. docs/tools.md says what comes of it.
package clients
