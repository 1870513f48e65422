// Package registration says what makes a cluster a worker: the objects in the worker and on the
// hub, and the kubeconfig that connects them. It is pure: what is applied and what --dry-run prints
// is the same.
//
//	Request ──> Worker()  Namespace, ServiceAccount, roles and bindings, token Secret
//	        └─> Hub()     WorkerCluster, then the Secret with the kubeconfig
//	Endpoint + token ──> Kubeconfig
//
// # Vocabulary
//
//   - An endpoint is how the hub reaches a worker: server address and CA.
//   - A token Secret, in the worker, stands for one token. A long-lived token is in
//     it; a bound token is bound to it. Either way deleting it revokes the token.
//
// # Names in the worker
//
// All are jobferry-hub-ID, where ID is the start of the UID of the hub's namespace kube-system: two
// hubs can share a worker, and one hub registers it once. The token Secret of a bound token ends in
// -bound, those that rotate makes in a random word.
//
// # Trade-offs
//
// The WorkerCluster goes first, so that no Job is placed there before its settings hold. The
// WorkerCluster's settings that aren't given anew stay as they are, and the permissions follow
// them.
package registration
