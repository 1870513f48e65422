// Package registration derives the objects that make a cluster a worker, in the worker and on the
// hub, and the kubeconfig that connects them. It is pure, so register applies what --dry-run
// prints.
//
//	Request ──> Worker()  Namespace, ServiceAccount, roles and bindings, token Secret
//	        └─> Hub()     WorkerCluster, then the Secret with the kubeconfig
//	Endpoint + token ──> Kubeconfig
//
// # Vocabulary
//
//   - An endpoint is how the hub reaches a worker: server address and CA.
//   - A token Secret, in the worker, belongs to one token. A long-lived token is in
//     it; a bound token is bound to it. Deleting it revokes the token.
//
// # Names in the worker
//
// All names are jobferry-hub-ID, where ID is the start of the UID of the hub's namespace
// kube-system: several hubs can share a worker, and each registers it once. The token Secret of a
// bound token ends in -bound, and one that rotate creates in a random word.
//
// # Trade-offs
//
// The WorkerCluster is applied before its Secret, so that no Job is placed there before its
// settings hold. Settings that aren't given stay as they are, and the permissions follow them.
package registration
