// Package fence_test cuts workers with the embedded Job controller off from their hub, on real API
// servers: their Jobs stop in time, continue when the hub confirms them, and never run in two
// places.
//
// The network between hub and worker is broken by the rig's proxy; jobferry-worker, as a process,
// talks to its own API server past it. Delays are seconds where the defaults are minutes.
package fence_test
