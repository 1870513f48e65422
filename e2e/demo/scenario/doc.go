// Package scenario is what the demo runs: ordinary manifests of Jobs, and how each Job must end. It
// is pure: no client, no clock.
//
//	jobs/*.yaml --- Load ---> Entries: manifest + kind for people + Expectation --- Judge ---> what is wrong, if anything
//
// The manifests are samples, too: but for the label that tells the simulated nodes how long a Pod
// takes, they would do in any cluster.
package scenario
