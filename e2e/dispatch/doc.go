// Package dispatch tests the dispatcher (pkg/manager with pkg/mirror and pkg/manager/dispatch) on
// real API servers: a hub, two workers that run Pods, and one in which the test itself plays the
// Job controller. See package ferrytest for the language.
package dispatch
