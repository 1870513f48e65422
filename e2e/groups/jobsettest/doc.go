// Package jobsettest runs JobSet's real manager beside a hub of the rig.
//
//	controller, err := jobsettest.Start(ctx, hub) // a component of the hub; Kill and Start work
//	client, err := jobsettest.Client(hub)
//
// # What runs
//
//	CRD, roles, webhooks ──> hub's API server <──> JobSet, as its own ServiceAccount
//	(JobSet's kustomization)
//
// The manifests are those of the module that the program is built from. Only its Deployment has no
// replicas, and the webhooks lead to the process. Their certificate comes from an authority of the
// test, as cert-manager's would: JobSet's own needs a folder that all processes of a machine share.
package jobsettest
