// Package pods shows the Pods of mirrors on the hub, where a namespace asks for it: each has a
// shadow Pod, on a Node that stands for its worker.
//
//	worker's Pods ──(the feed's one watch)──▶ report.Store ─┐
//	shadow Pods ────(a watch for each Node)─▶ shadows ──────┤                                  ┌─▶ hub: create, status, delete
//	hub Jobs, namespaces ──(manager's cache)────────────────┴▶ queue ─▶ gather ─▶ Decide ─▶ apply ┤
//	                                                                  (Snapshot)  (Action)      └─▶ worker: delete
//	workers ──▶ nodes: a Node and its Lease for each
//
// The key of the queue is the name of a Pod, which its shadow shares. So the Pods of one Job are
// written side by side, and a look costs the same however many Pods the Job has. What concerns a
// whole Job or namespace adds the names of its Pods.
//
//   - shadow.go makes the shadow Pod of the hub Job's own template: of what a worker says, only the
//     status, the completion index and its failures reach the hub (package report).
//   - decide.go is pure: what is to be done about a Pod and its shadow.
//   - gather.go reads, apply.go writes, and triggers.go adds names to the queue. Every so often,
//     sweep.go adds those that aren't as they should be: what else was missed is found.
//   - models.go has what the shadows of a Job are made of, and reads large Jobs for it.
//   - watch.go watches the Pods of the Nodes: also those that others made there. Nobody but this
//     package ends their deletion, as a kubelet would.
//   - nodes.go writes the Nodes and Leases.
//
// # Nothing of a shadow Pod is believed
//
// A shadow is what its worker's Pod is: it's made, changed and removed by that alone, and can be
// made again at any time. One fact is read of it: that a person has deleted it. The hub's own
// controllers delete Pods, too: on Nodes without a heartbeat, with their owners and namespaces, or
// when there are many that have ended. To pass these on would end what runs. So a deletion is
// passed on only if
//
//   - the shadow has a deletionTimestamp, and time to end. It has none if it's removed at once, as
//     by podgc, or by kubectl delete --force: then it's made again;
//   - it has no condition DisruptionTarget, which taint eviction, podgc, preemption and the
//     eviction API set before they delete;
//   - neither Pod nor shadow has ended; and
//   - a live read of the hub says that the Job is there, and that neither it nor its namespace is
//     being deleted.
//
// # Writes
//
// A shadow is created when its Pod is first seen. Its status is written when a container runs, when
// readiness changes, when the Pod has ended, and when it waits for something that a reader should
// know. Other changes wait for a moment, so that a Pod that is neither restarted nor loses
// readiness costs three writes. An end doesn't wait: whoever sees that a Job is complete finds its
// Pods ended. They go by a client of their own, with a rate of its own, which the workers share in
// turns, and in each its namespaces (pace.go): Jobs don't wait for Pods, nor one worker's Pods for
// another's, nor a namespace's for one that has very many written.
//
// A status is patched strategically, as kubelets do it: a condition that the hub has set stays. An
// annotation has the digest of the report that was written last. Who changes phase or readiness
// besides is corrected.
//
// # Namespaces
//
// A hub that deletes a namespace deletes its Pods first, and its Jobs only when these are gone. So
// shadows there don't wait for the Pods in the workers, which end with the Jobs.
//
// # What a tenant may cost
//
// Whoever may create Pods in a namespace can create any number of them on our Nodes, which claim to
// be shadows of any Job. So
//
//   - a Pod counts as a shadow of a Job only in the Job's namespace;
//   - a sweep has a limited number of Pods looked at, of which each namespace has a share. One that
//     only finalizers keep isn't looked at until it changes;
//   - no Job is unpacked for a Pod that is decided without it;
//   - workers take turns with the writes, and in each its namespaces; and
//   - of each namespace, one large Job is read at a time, at a pace.
//
// # Trade-offs
//
// The queue has Pods, not Jobs: a Job of 10,000 Pods would be one long look at all of them for each
// that changes, and its Pods would be written one after the other.
//
// The containers are those of the Job's template on the hub, not those of the worker's Pod: nothing
// of that has to be read, bounded or validated. A container that admission in the worker adds isn't
// shown.
package pods
