// Package clock sets the wall clock of one process apart from the machine's: a cluster whose clock
// is behind, or ahead, beside others that are right, without a machine for each.
//
//	clock.Shift(pid, -90*time.Second)   // from now on the process reads a time 90 s ago
//
// A program asks for the time in the vDSO, a small library that the kernel maps into each process.
// Shift stops the process, replaces the function clock_gettime in the process's own copy of that
// library by one that makes the system call and adds the offset to the wall clock, and lets the
// process go on. The monotonic clock, and so timers and time-outs, stay as they are: what is seen
// is a clock that was set, as by an administrator or by NTP.
//
// # Trade-offs
//
// Time namespaces of Linux shift the monotonic clocks only; a preloaded library doesn't reach
// static programs, as those of Kubernetes are. The function is machine code, here for Linux on
// amd64: Supported says whether it can be done. Programs that don't use the vDSO (or other
// functions of it, as time(2) of libc) aren't reached; Go programs are.
package clock
