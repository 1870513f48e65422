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
//	          ├─ removal    the N Jobs are deleted: all are gone
//	          └─ MultiKueue N Jobs by way of Kueue in all clusters, after all rounds, with the same audit logs
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
// RunSoak has Jobs come steadily, at four fifths of what the machine does for some minutes. Users
// resume some, edit some and delete some, and a CronJob makes others. Credentials of workers are
// replaced, and the leader ends every few minutes. It judges the trend of the leaders' memory and
// goroutines, how late statuses are (apart from the time in which nobody leads), and what was lost:
//
//	100 Jobs at a time ──▶ rate ──▶ load, leaders, rotations ──▶ last Jobs ──▶ ends, events, what is left
//
// With FloodOptions.Against, RunFlood measures two managers by turns, and tells which figures of
// the one are worse than the other's by more than rounds of one program differ: see
// tools/bench-check. With FloodOptions.Pods, the one shows the Jobs' Pods on the hub.
//
// With FloodOptions.Peer, MultiKueue has its turn after the last round, with the program that
// e2e/versions/kueue pins. No option of Kueue changes the rate limit of its clients of workers, 5
// requests per second, which would set all times: the program is built with 1,000. Its requests
// are those for objects in the Jobs' namespace. What Kueue writes of queues isn't among them.
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
//
// # Where the time goes
//
// CPU for each of 500 Jobs until all are Complete, on the mean of five rounds with -bound:
//
//	                                Jobferry  lower bound    floor
//	hub: etcd                         1.1 ms       1.0 ms   0.0 ms
//	hub: kube-apiserver               7.5 ms       5.8 ms   0.1 ms
//	hub: kube-controller-manager      0.6 ms       0.6 ms   0.0 ms
//	workers: etcd                     2.4 ms       2.3 ms   1.8 ms
//	workers: kube-apiserver          17.9 ms      17.4 ms  13.3 ms
//	workers: all others               7.2 ms       7.2 ms   5.7 ms
//	all clusters                     36.9 ms      34.3 ms  21.0 ms
//	manager                           4.8 ms       0.0 ms   0.0 ms
//
// The bound's own loop takes 1.6 ms. With all cores busy, a manager that takes 5 ms can't come
// nearer to the bound than (34.3 + 5) / (34.3 + 1.6), 1.09 times.
//
// The same Jobs cost two clusters a quarter to a third more than one. An event costs the hub's API
// server 0.3 to 0.7 ms. What one write costs, with 500 of a kind at a time:
//
//	write                               kube-apiserver     etcd
//	the user's CREATE of a Job                 0.80 ms  0.18 ms
//	PATCH, placement and finalizer             1.16 ms  0.18 ms
//	UPDATE of the status, started              1.16 ms  0.16 ms
//	UPDATE of the status, Complete             1.38 ms  0.24 ms
//	CREATE of an event                         0.32 ms  0.06 ms
//	the user's DELETE                          0.68 ms  0.18 ms
//
// A patch costs more than a creation: the API server encodes the Job as JSON, merges, decodes, and
// compares all fields for managedFields. A status that is written by an UPDATE in protobuf costs as
// much as by a merge patch, so the manager patches.
//
// A profile of 2,000 Jobs has no peak: 12% each is to read watches, to look at Jobs and to collect
// garbage. Each Job has 13 looks until it's removed, three of which find the versions of the look
// before: after a wait that something else has ended.
//
// # Where the memory goes
//
// With 50,000 live Jobs on 100 workers, the manager holds 270 MB: 51 MB are Jobs and mirrors, 36 MB
// the capacity that Jobs and nodes take, 36 MB Pods as the scheduler's rules see them, 23 MB what
// is remembered of Jobs, and 20 MB the times of Pods. There are also 36 MB of stacks of 7,154
// goroutines (71 for each worker), and 50 MB of the program. A start allocates 190 KB for each Job:
// a quarter to decode what the watches bring, a fifth to unpack Jobs from the caches, 13% to
// compare mirrors with their Jobs, 10% to add up what Pods request.
//
// A handover takes 1.5 to 1.9 s with 50,000 Jobs on 100 workers, and took 3.7 s once in five. The
// new leader uses both cores meanwhile. Three quarters of that are to look at Jobs. New Jobs go
// first. The old one releases its Lease before it writes its last events, which take up to 2 s.
//
// # What is measured
//
//   - A client measures all times, from before it sends the create request until it receives a
//     watch event.
//
//   - The API servers' audit logs count the requests of the manager, from the first create to
//     the deletion of the last Job.
//
//   - While no Job changes, the manager renews its Lease every 2 s, probes each worker every 10
//     s, and opens watches again that the API server has ended. It also writes the account of
//     each running Job every 6 hours or more.
//
//   - The built-in Job controller collects the changes of a Job for about a second. All times
//     until Complete include that second.
//
// # Where the time goes, in short
//
// The clusters use nearly nine tenths of the CPU time. The manager uses 5 to 10 ms for each Job,
// and the hub's control plane about 10 ms. On the hub, a Job needs the user's create request, one
// patch to place it, two patches of its status and one event. In the worker, it needs one create
// and one delete request.
//
// The manager delays some writes of a status, so that one write reports several changes:
//
//   - A write that only reports progress waits until 500 ms (--progress-floor) have passed since
//     the last write.
//   - The conditions SuccessCriteriaMet and FailureTarget announce the end of a Job. Their write
//     waits for up to the same time for Complete or Failed.
//   - While the hub is busy, with more than 4 of these writes in flight, they wait longer, for up
//     to 10 s or until it's busy no more. The write that reports the start of a Job then waits,
//     too.
//   - All other writes are immediate: the end of a Job, and what another step needs, such as a
//     move.
//   - With --progress-floor=0, no write waits.
package bench
