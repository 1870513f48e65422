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
package conformance
