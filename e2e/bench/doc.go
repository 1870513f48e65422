// Package bench measures Jobferry on real API servers, next to a floor: what the same Jobs cost in
// one cluster without it, on the same machine, in the same run.
//
//	RunFlood ──▶ clusters (a hub, workers; package rig) ──▶ manager (the real program, a process)
//	          │
//	          ├─ floor      N Jobs straight into one worker
//	          ├─ bound      N Jobs, the writes that any dispatcher makes for them, by a loop that does nothing else
//	          ├─ singles    one Job at a time: create -> mirror
//	          ├─ flood      N Jobs at once: all Complete, lag, CPU
//	          ├─ quiet      nobody does anything: what does the manager ask for?
//	          └─ removal    the N Jobs are deleted: all are gone
//	          │
//	          ▼
//	package measure (times, usage)   package audit (requests)  ──▶  report.Result ──▶ Markdown, JSON
//
// Each phase has a namespace of its own, so that the audit logs tell which request was for what.
// The manager has a user of its own in all clusters, by which its requests are found there.
//
// RunSpan measures one Job over several workers, with the embedded Job controller and its fence,
// beside the same Job in one cluster with the room of all:
//
//	one cluster ──▶ the Job ──▶ stopped ──▶ a hub and workers ──▶ a small Job ──▶ the Job
//	                                                    at a quarter: a worker is drained ┤
//	                                        at half: another one is cut off, for good ┘
//
// Package indexes counts how often each index completed. The Job's parallelism and the time of its
// Pods give the most Pods per second, the same for both; by default the workers that are left at
// the end have room for it. Choose them so that the machine, which all control planes share, isn't
// the limit: the figures say how many of its cores were busy.
//
// RunScale measures a manager with a real hub and many simulated workers (package clustertest). One
// Job is dispatched, and copied thousands of times: into the hub's etcd, and into the workers.
//
//	few Jobs ──▶ memory ──▶ many ──▶ memory ──▶ start again: needless writes? ──▶ leader ends, watches
//	break, a worker is slow, workers are lost and come back
//
// Each figure is told as soon as it's there. After ScaleOptions.TimeLimit, those that are there are
// the result.
//
// RunSoak has Jobs come steadily, at four fifths of what the machine does at its fastest. Users
// resume some, edit some and delete some, and a CronJob makes others. Credentials of workers are
// replaced, and the leader ends every few minutes. It judges the trend of the leaders' memory and
// goroutines, how late statuses are (apart from the time in which nobody leads), and what was lost:
//
//	300 Jobs at once ──▶ rate ──▶ load, leaders, rotations ──▶ last Jobs ──▶ ends, events, what is left
//
// With FloodOptions.Against, RunFlood measures two managers by turns, and tells which figures of
// the one are worse than the other's by more than rounds of one program differ: see
// tools/bench-check. With FloodOptions.Pods, the one shows the Jobs' Pods on the hub.
//
// # What is measured, exactly
//
//   - Times are the bench's: from before a create is sent to the arrival of a watch event. The
//     delays of both are in.
//   - Pods end as soon as they run, and nodes have room for all: nothing but the control planes and
//     the manager is measured. All of them share this machine's cores, and the floor leaves most of
//     them at rest.
//   - The worker's own Job controller collects a Job's changes for a second or so before it writes
//     them.
package bench
