// Package plugin tests kubectl-jobferry as a program, on a hub and workers: registration from
// nothing with RBAC on, each permission of pkg/workeraccess, rotation while Jobs run, drain,
// removal.
//
// # Words
//
//   - terminal: the program with a kubeconfig that has a context for the hub, and one for each
//     worker's admin.
//   - outcome: what one run printed, and its exit code.
package plugin
