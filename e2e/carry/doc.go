// Package carry tests on real API servers what is copied to a Job's worker: ConfigMaps, Secrets and
// ServiceAccounts (pkg/manager/carry). Simulated Pods read none of them, so the tests look at the
// objects, at their owners, and at whether the Job continues.
package carry
