// Package sandbox runs a program in mount, network and process namespaces of its own, in which
// containers can be started as on a node: everything that is mounted, linked or started there ends
// with the program, in whatever way it ends. Only cgroups stay; Clean removes those.
//
//	program ──Run──> the same program, as the sandbox's first process ──Prepare──> network, /run, /proc
//
// It takes root on Linux, with cgroup v1 hierarchies that can be written to. Missing says what
// isn't there.
package sandbox
