// Package preference reads the annotations by which a user chooses clusters for a Job. It is pure.
//
// jobferry.dev/cluster-selector is a label selector: the Job goes to no other cluster.
// jobferry.dev/cluster-preference orders the clusters in steps:
//
//	tier=owned; region=eu after 5m; * after 30m; return after 10m
//
// Each step is a label selector over WorkerClusters, or * for all. A cluster belongs to the first
// step that selects it. A step opens when the Job has waited for as long as it says, and then stays
// open: the Job goes to the first open step with a cluster that fits. Waits never become shorter
// from one step to the next, so a cluster belongs to the step by which it opens first. A cluster
// that no step selects is never used.
//
// "return" at the end has a Job that runs go back to a cluster of an earlier step that has had room
// for it for some time.
package preference
