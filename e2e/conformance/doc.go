// Package conformance holds Jobferry against Kubernetes' own tests of Jobs, and JobSet's; `make
// conformance`.
//
//	module cache ──scratch──▶ integration: the integration suite, with pkg/worker as the Job controller
//	                     └──▶ nodes:       the e2e cases, on real nodes
//	                                         drop-in:    jobferry-worker in the built-in's place
//	                                         dispatcher: hub and worker, shown as one cluster by front
//	                                         hub:        the hub alone, which shows the worker's Pods
//	                                         jobset:     the same, with JobSet's cases and its manager
//
// Package scratch takes the sources from the module cache and compiles them with what this
// repository adds. This package has what the parts share: the results, and the list of the tests
// that are left out, each with its reason, which docs/reference/conformance.md shows.
//
// # How the sources are used
//
// The sources come from the Go module cache, in the versions that e2e/versions pins. The e2e cases
// are compiled as they are. The integration suite has three changes: it starts our controller,
// compares our counters by the names and labels of the built-in's, and delays events in our
// informers instead of the built-in's. A source to which they don't apply is an error.
//
// For the parts hub and jobset, a policy of the hub labels the namespaces that the cases make with
// jobferry.dev/dispatch: enabled and jobferry.dev/pods: enabled. Some cases choose a node by its
// hostname. They only find the hub's node, so the worker's node has the same hostname.
//
// JobSet's cases use the image bash:latest, which a kubelet pulls each time. The nodes have an
// image of that name, and a policy of the workers has Pods use it. One case, should allow to resume
// JobSet after updating PodTemplate, waits for Pods that no node can take. Where capacity is
// counted, such a Job stays on the hub, so its worker has capacity: Unlimited.
package conformance
