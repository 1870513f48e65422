// Package reflect holds pkg/mirror against Kubernetes' own rules.
//
// An API server for Jobs, reduced to what decides, stands for the hub, and another one for the
// worker. Each is a program of its own, apiserver, which is built once per Kubernetes release from
// that release's packages, so that a history can have a hub and workers of different releases.
//
//	this test (pkg/mirror, the newest types) <--JSON--> apiserver of 1.34
//	                                         <--JSON--> apiserver of 1.37, ...
//
// Random Jobs live through random histories: users suspend, resume and scale them on the hub; their
// worker is honest, of an older or a newer version, with a clock that's wrong; or it lies. Whatever
// happens:
//
//   - no status that Reflect lets through is rejected by the hub,
//   - no mirror of Project, and no patch of Drift, is rejected by the worker,
//   - an honest worker never breaks a rule, and its end is the hub's end,
//   - the same input twice gives nothing new.
//
// `go test -rapid.checks=100000` runs longer than the default of 100 histories per test and hub;
// `-rapid.seed` replays one. `-releases 1.33,1.35` chooses the releases.
package reflect
