// Package fleet is what a chaos run has its faults in: a hub with two managers, and three workers,
// all as processes.
//
//	manager-1 --- link ---+                     +--- link --- w1: embedded controller, fenced
//	                      +--> hub     Secrets -+--- link --- w2: embedded controller, fenced; its clock is behind
//	manager-2 --- link ---+                     +--- link --- w3: built-in controller; its clock is ahead
//
// Each link is a fault-injecting proxy. All processes are kept: whatever ends by itself, or is
// killed, is started again, as a kubelet or systemd would; faults hold that off for as long as they
// last. Managers lead by turns, by a Lease that expires after some seconds.
package fleet
