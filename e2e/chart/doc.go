// Package chart tests the Helm charts, the kustomize bases beside them, and the permissions that
// they give.
//
//	values ──helm template──▶ golden files; strict dry run; the Pod Security Standard "restricted"; kustomize
//	chart ──helm install──▶ API server of the rig ──token of the chart's ServiceAccount──▶ the program, as a process,
//	                        with the Deployment's arguments ──▶ Jobs ──▶ audit log ──▶ package permissions
//
// Nodes of the rig run no images, so the Deployments' Pods never start: the test starts the program
// itself, with exactly their rights and arguments, but for the addresses that it listens on.
//
// Golden files are written anew by `go -C e2e test ./chart -run Golden -update`;
// docs/reference/rbac.md by `go -C e2e test ./chart -run Docs -update`.
package chart
