// Package reflect holds pkg/mirror against Kubernetes' own rules.
//
// An API server for Jobs, reduced to what decides (defaulting, conversion, and the strategies of
// batch/v1 Jobs and their status, with their validation), stands for the hub and for the worker.
// Random Jobs live through random histories: users suspend, resume and scale them on the hub; their
// worker is honest, of an older or a newer version, with a clock that's wrong; or it lies. Whatever
// happens:
//
//   - no status that Reflect lets through is rejected by the hub,
//   - no mirror of Project, and no patch of Drift, is rejected by the worker,
//   - an honest worker never breaks a rule, and its end is the hub's end,
//   - the same input twice gives nothing new.
//
// `go test -rapid.checks=100000` runs longer than the default of 100 histories per test;
// `-rapid.seed` replays one.
//
// It's a module of its own because it links k8s.io/kubernetes. go-1.34.mod is the same against the
// oldest version that the hub supports in the rig: `go test -modfile=go-1.34.mod`.
package reflect
