// Package pods tests on real API servers that the hub shows the Pods of Jobs where a namespace asks
// for it, and that nothing but a person's deletion of one reaches a worker. The hub runs all
// controllers of Kubernetes.
package pods
