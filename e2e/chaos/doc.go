// Package chaos runs Jobs of all kinds through Jobferry while a schedule of faults breaks
// processes, links and clocks, while policies, people and tools in workers do what they do, and
// judges from outside whether each Job went as it would have gone on one healthy cluster.
//
//	seed --> schedule: faults --> inject --> fleet: hub, 2 managers, 3 workers
//	     \-> story: Jobs, acts --> users ---^   |
//	                                            v
//	          report <-- checker (pure) <-- watch: all API servers, by connections of its own
//
// # A run
//
//  1. The fleet starts; its workers are registered.
//  2. Users submit Jobs and edit them; faults begin and are healed. The checker judges each event.
//  3. All faults are over: each Job has some minutes to end, and must have ended as its story says.
//  4. All Jobs are deleted, then the workers unregistered: nothing may be left.
//  5. The hub's audit log may show no status that its API server rejected.
//
// A seed makes the same Jobs, acts and faults at the same times again. What the processes make of
// it differs from run to run, as they share a machine; so a violation is printed with the time line
// of its Job, and all faults around it.
//
// # What runs
//
// Two of the workers have the embedded Job controller with the fence, one has the built-in. Two
// have wrong clocks. workerLostTimeout is 30 s. The Jobs are of all kinds, and users suspend,
// resume, scale, move, delete and recreate them. One in ten may run on several workers, and one in
// ten is in a group. The hub shows the Pods of half of them. The program decides the expected end
// of each Job before the run.
//
// # A violation
//
// The program prints each violation with all events of its Job in all clusters, and all faults
// meanwhile. -job-kinds and -fault-kinds limit a run to the kinds that reproduce it, as in make
// chaos SEED=7 JOBS=40 FAULTS=5 CHAOS='-job-kinds long -fault-kinds "black hole on link"'.
// bin/chaos -seed 7 -print shows the schedule of a seed, which is always the same.
// JOBFERRY_RIG_LOGS=<folder> keeps the logs of all processes.
package chaos
