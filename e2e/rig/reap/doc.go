// Package reap makes sure that a program's child processes and temporary folders do not outlive it,
// however it ends: by a return, a panic, a signal, a test's time-out, or kill -9.
//
//	program --- pipe ---> reaper (the same executable, in a session of its own)
//	   |  "watch pid 4711", "watch folder /tmp/...", "forget ..."        |
//	   X  dies: the kernel closes the pipe                               v
//	                                          kills the pids, removes the folders, ends
//
// The reaper is the program itself, started again with an environment variable that this package's
// init looks for: importing the package is all it takes. It has its own session, so that Ctrl-C at
// a terminal ends the program but not the reaper.
//
// Trade-off: Linux could kill the children by a parent-death signal, but that fires when the
// *thread* that forked ends, exists on Linux only, and removes no folder.
package reap
