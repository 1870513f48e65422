// Package trainertest runs Kubeflow Trainer's real manager beside a hub of the rig that has JobSet.
//
//	err := trainertest.Start(ctx, hub)
//
// # What runs
//
//	CRDs, roles, webhooks ──> hub's API server <──> Trainer, as its own ServiceAccount ──> JobSets
//	(Trainer's kustomization)
//
// The manifests are those of the module that the program is built from. Only its Deployment is left
// out, and the Service of the webhooks leads to the process.
package trainertest
