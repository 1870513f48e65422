// Package bench measures Jobferry on real API servers, next to a floor: what the same Jobs cost in
// one cluster without it, on the same machine, in the same run.
//
//	Run ──▶ clusters (a hub, workers; package rig) ──▶ manager (the real program, a process)
//	          │
//	          ├─ floor      N Jobs straight into one worker
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
// # What is measured, exactly
//
//   - Times are the bench's: from before a create is sent to the arrival of a watch event. The delays of both are in.
//   - Pods end as soon as they run, and nodes have room for all: nothing but the control planes and the manager is
//     measured. All of them share this machine's cores, and the floor leaves most of them at rest.
//   - The worker's own Job controller collects a Job's changes for a second or so before it writes them.
package bench
