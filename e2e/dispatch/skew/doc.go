// Package skew tests the dispatcher with a hub and a worker of different Kubernetes releases: the
// newest and the oldest that the rig runs, both ways round.
package skew
