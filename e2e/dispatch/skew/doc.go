// Package skew tests the dispatcher with a hub and a worker of different Kubernetes releases: the
// newest and the oldest that tests run with, both ways round, or those that the environment asks
// for.
package skew
