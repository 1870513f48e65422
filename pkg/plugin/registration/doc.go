// Package registration derives the objects that make a cluster a worker, in the worker and on the
// hub, and the kubeconfig that connects them. It is pure, so register applies what --dry-run
// prints.
//
//	Request ──> Worker()  Namespaces, ServiceAccount, roles and bindings, Lease, token Secret
//	        └─> Hub()     WorkerCluster, then the Secret with the kubeconfig
//	Endpoint + token ──> Kubeconfig
//
// # Vocabulary
//
//   - An endpoint is how the hub reaches a worker: server address and CA.
//   - The account is the ServiceAccount that the hub is in the worker. Deleting it revokes all its
//     tokens, also those that somebody has made with one of them.
//
// # Names in the worker
//
// All names are jobferry-hub-ID, where ID is the start of the UID of the hub's namespace
// kube-system: several hubs can share a worker, and each registers it once. An account that rotate
// creates has a random word at its end.
//
// # Trade-offs
//
// The WorkerCluster is applied before its Secret, so that no Job is placed there before its
// settings hold. Settings that aren't given stay as they are, and the permissions follow them.
package registration
