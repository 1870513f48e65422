// Package front shows a hub and one worker as one cluster, for programs that look at Jobs and their
// Pods in one: an HTTPS reverse proxy with a kubeconfig of its own.
//
//	                      Pods, nodes, quotas, PodDisruptionBudgets, ... ──▶ worker
//	client ──▶ Front ──▶  namespaces: created and deleted in both
//	                      all else ──▶ hub
//
// Namespaces that are created get the label by which the hub dispatches their Jobs. Clients are
// administrators of both clusters, by the token in the kubeconfig.
package front
