// Package worker is a full Job controller: it runs batch/v1 Jobs as the built-in one of Kubernetes
// 1.37 does, in clusters without one, or beside it. [Setup] adds it to a controller-runtime
// manager.
//
// # Data flow
//
//	events of Jobs and Pods
//	      |  (Pod events are batched: SyncBatchPeriod, batch.go)
//	      v
//	snapshot: Job and Pods from the cache, corrected by the pending writes
//	      |
//	plan.Compute  --> delete and create Pods
//	      |
//	Plan.Record   --> write the status, then untrack the Pods that have ended
//	      |
//	Record.Settle --> write the status, then the events
//
// Package plan decides; this one gathers and applies. Two small reconcilers stand beside that of
// Jobs: orphans untracks Pods whose Job is gone or has finished, expire deletes finished Jobs
// (ttlSecondsAfterFinished).
//
// # Reading its own writes
//
// pending.go holds what the API server has accepted, per Job, until the cache shows it; a sync
// corrects the cache by that. So it never waits for the cache, and a late cache makes it create no
// Pod twice. A created Pod may be gone before a sync sees it in the cache: its event of deletion
// says so, and if there was none, a live list after cacheLag.
//
// pending.go doesn't hold what a predecessor has written. A new leader syncs no Job before its
// caches are as new as a consistent read that it makes then, and continues from status and
// finalizers; see takeover.go. Standbys have no informers, so that they start with a new list.
//
// Nor does it hold what was written without an answer. That matters for new Pods only: any other
// write can be sent again. After such a request, the next sync of the Job lists its Pods live; see
// unanswered.go.
//
// Upstream has nothing that does the same. controller-runtime's client can wait in each read until
// its cache has its writes, as the built-in does since 1.36. This controller avoids that wait,
// because a List of Pods would wait for the writes of all Jobs. client-go's MutationCache overlays
// single objects by the key of a store. But a sync lists the Pods of a Job, and tracks deletions
// and removed finalizers, whose requests return no Pod.
//
// A [plan.IsShard] asks for more: an index that it gives back may start in another cluster at once,
// so a fresh cache isn't fresh enough. Before a process first syncs a shard it reads the Job and
// its Pods from the API server; see shard.go.
//
// # The fence
//
// The controller stops the Jobs of a hub that hasn't renewed its Lease for some time, so that the
// hub can move them. Package fence has the rules. The fencer watches the hubs' Leases. A Job whose
// fence is closed is first marked (annotation jobferry.dev/fenced); its Pods must not run as long
// as it has the mark, which the hub removes.
//
// # Several of them
//
// Only one process may act on a cluster's Jobs at a time: run it with leader election. It acts only
// on Jobs with the values of spec.managedBy in [Options.ManagedBy]. In the built-in's place, it
// ends when it notices another Job controller; see probe.go.
//
// # Memory
//
// The cache has all Pods of the cluster. [CacheOptions] reduce them to what is read (slim.go). A
// sync reads them by an index of the informer without copying them (podindex.go), so nothing may
// change them: the tests in e2e run with client-go's detector of such changes. New Pods are made
// when they're sent, and of a large template few at a time (scale.go).
//
// Labels of a Pod that take more than 16 KiB aren't held: a Job neither releases nor adopts it. Nor
// is a selector of more than 64 keys and values: its Job adopts a Pod in its next sync, not when
// the Pod comes.
//
// # What differs from the built-in
//
// Nothing that a user of the Job API relies on: e2e/differential compares both. This one does
// better in the following:
//
//   - its back-off survives a restart: it is derived from the Pods, not kept in
//     memory only
//   - a surplus Pod is untracked only if it hasn't changed: one that has succeeded
//     meanwhile is counted
//   - a Pod whose finalizer was removed for a deletion that then never happened
//     (a crash in between) is tracked again; so is one that somebody made with the Job's owner
//     reference, but without the finalizer. One whose deletion is refused stays untracked until
//     it's deleted or the Job is edited
//   - an index that has both a succeeded and a failed Pod is settled once, as the
//     API server demands; a success wins
//   - a Pod is listed as uncounted once, whatever its phase does (kubernetes#125410), and the list
//     keeps its bound while finalizers can't be removed
//   - a suspended Job whose last Pods decide how it ends gets its terminal condition; the API
//     server refuses the built-in's, for want of a start time, until the Job is resumed
//   - syncs don't wait for the cache, and a Job with more to do than one sync may
//     is synced again at once: large Jobs take half the time
//   - a Job is synced as soon as enough of its Pods have ended, and not only once
//     per SyncBatchPeriod: Jobs of short Pods don't wait for it
//   - doubling of the back-off stops at 6 minutes, as documented; the built-in
//     doubles up to 10
//   - a Job with spec.scheduling starts no Pods without its PodGroup, also if it belongs to another
//     controller, such as a CronJob, or has a name that is too long for the built-in
//
// This controller can't see feature gates, so it goes by the Job: it makes a Workload and a
// PodGroup for a Job that has spec.scheduling (podgroup.go). An API server without the gate
// WorkloadWithJob drops that field. With the gate, the built-in makes both for Jobs without
// spec.scheduling, too, which changes nothing for their Pods. This controller doesn't make the
// PodGroups that other controllers, such as JobSet's, delegate by annotation, and an event says so.
//
// # What 1.37 changed
//
// Beside spec.scheduling, the built-in lost the code for feature gates that are always on
// (JobPodReplacementPolicy, JobBackoffLimitPerIndex, JobSuccessPolicy, SidecarContainers), and
// tries again to remove the finalizer of an orphaned Pod that it found by the Pod's labels, as this
// one always did. podReplacementPolicy alone decides when a Pod is replaced; here podFailurePolicy
// still implies Failed, which makes a difference only before 1.34, where the field can be missing.
//
// A Pod has the fields of its Job's template that the types of this build know, as with the
// built-in. Of a mirror, it has all: template.go reads the Job again if its record names recent
// fields.
//
// # Permissions
//
// See permissions.go.
package worker
