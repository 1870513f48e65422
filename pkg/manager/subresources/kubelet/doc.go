// Package kubelet serves the kubelet's API for the hub's Nodes that stand for workers: logs,
// commands and ports of the Pods there. So `kubectl logs`, `exec`, `attach`, `port-forward` and
// `cp` work on the hub as on any cluster, by the hub's own RBAC and audit.
//
//	hub API server ─▶ authenticate ─▶ read the Pod ─▶ authorize ─▶ Backends.Serve
//	(pods/log,        certificate of   of the hub      nodes/proxy   package subresources: limit, find
//	 pods/exec, …)    the client CA                    of its Node   the mirror, its Pod, and connect
//
// It knows the protocol and the hub. Workers are package subresources' concern.
//
// # Who may ask
//
// As with any kubelet, a client needs a certificate of the cluster's client CA, which is in
// kube-system/extension-apiserver-authentication, and the right to nodes/proxy of the Node. That is
// the API server, whose --kubelet-client-certificate has this right on every cluster with kubelets.
// It has authorized its user before, who isn't named in its request. A kubelet takes GET for get
// and POST for create, so that whoever may get nodes/proxy runs commands by WebSocket. Here a
// session needs create, whatever its method.
//
// There is nothing else: no /run, /pods, /metrics or /logs, and no token is taken.
//
// # Which Pod
//
// A tenant may write Pods of his namespace as he likes, on any Node. So a Pod of the hub is
// believed in nothing. It only says which Job, worker and Pod are meant:
//
//   - the label jobferry.dev/shadow, and a Node jobferry-<worker>: else the Pod isn't one of ours;
//   - its controller: the hub Job, by name and UID, in the Pod's own namespace;
//   - the annotation jobferry.dev/pod-uid: the Pod of the worker.
//
// Package subresources then reads the hub Job, requires that UID and that the Job is placed on that
// worker, and that the mirror is proven to be this Job's. In the worker, the Pod must have the same
// name and exactly that UID, and the mirror as its controller. So a tenant who edits all of this
// reaches Pods of Jobs in his own namespace, and no others.
//
// The Pod is read before the authorization, which needs its Node. Who has no right to it is told
// the same as if there were none.
//
// # Errors
//
// An API server shows its user the text of an error only if the code is 400 or 500, so errors of
// logs have these. Clients read errors of sessions themselves, as a Status.
//
// # The certificate
//
// It's self-signed, as a kubelet's is by default, and API servers don't verify it unless they run
// with --kubelet-certificate-authority. For these, each replica can ask the signer
// kubernetes.io/kubelet-serving for one (Certificate): somebody must approve that, as with a
// kubelet's.
//
// # Trade-offs
//
// github.com/virtual-kubelet/virtual-kubelet (v1.14.1) has this API in its node/api, but it ends
// each session and gives its streams to a provider, which would have to begin another session with
// the worker. Here the bytes of a session pass as they are, of any protocol. It would also bring
// its own router, logging and tracing.
package kubelet
