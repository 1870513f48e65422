// Package upgrade tests that Jobs don't notice upgrades: of Jobferry on the hub and in a worker,
// from the previous release to this one, back, and again; and of Kubernetes on the hub and in the
// workers, from one minor release to the next.
//
//	previous release ──product.Previous──┐
//	this checkout ───────────────────────┴─> version ──helm, processes──> hub, w1 (built-in), w2 (embedded)
//	                                                                          │ watches
//	test ──Pods end when it says so──> Jobs of all kinds ──────────────> witness ──> chaos/checker's rules, and:
//	                                                                          no Job moves, no Pod is stopped, none is extra
//
// The Pods of all Jobs run until the test ends them, so that each step finds Pods that run, and
// each pair of versions counts some Pods that end.
//
// # Trade-offs
//
// The previous release is built from the history. A checkout without it skips the test, and says
// so.
package upgrade
