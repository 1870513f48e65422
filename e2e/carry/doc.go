// Package carry tests on real API servers what goes along with a Job to its worker: ConfigMaps,
// Secrets and ServiceAccounts, and the look for PersistentVolumeClaims (pkg/manager/carry).
// Simulated Pods read none of them, so the tests look at the objects, at who owns them, and at
// whether the Job goes on.
package carry
