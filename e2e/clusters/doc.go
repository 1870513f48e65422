// Package clusters tests pkg/manager/clusters on a real hub: registration, refusal, rotation, loss
// and removal of workers, and what the hub's API server makes of a WorkerCluster. The workers are
// real, too, but for the soak, where two hundred of them are as much of an API server as a
// connection needs.
//
// Jobs are counted by the test instead of the dispatcher: what it does with the connections is
// tested with it.
package clusters
