// Package kueue makes Jobferry the place where the Jobs of Kueue on the hub run. Kueue is the
// queue: it suspends, admits and evicts hub Jobs; nothing here does.
//
//	CRDs of Kueue ─▶ lifecycle ─▶ session (own cache; there while the CRDs are)
//	                                │
//	     Workload ─▶ admission ─────┼─▶ dispatch: where a Job may be, and whether
//	     AdmissionCheck             │   it's to be placed while it's suspended
//	     MultiKueueConfig           │
//	     ResourceFlavor             │
//	     hub Job ─┐                 │
//	     Worker-  ├─▶ decideCheck ──┼─▶ Workload: state of our admission check
//	     Cluster ─┤                 │
//	              ├─▶ decideActive ─┼─▶ AdmissionCheck: condition Active
//	     Multi-   │                 │
//	     Kueue- ──┴─▶ decideCluster ┴─▶ registration Secret; condition Active
//	     Cluster
//
// Without an AdmissionCheck of ours, this package has no part in a Job's way: Kueue resumes it, and
// it's placed then.
//
// # The way of a Job with an AdmissionCheck
//
// Kueue reserves quota; the Job stays suspended. Its admission now says so, and the dispatcher places it
// as it places any Job, with the room in the worker held for it: the placement is written down on
// the suspended hub Job. That's what makes the check Ready; Kueue admits the Workload and resumes
// the Job, whose mirror is then created. Where no worker takes it, the check is Pending with the
// reason of each; after RetryAfter, or at once when no worker ever could, it's Retry: Kueue takes
// the quota back and queues the Job again later. A lost worker makes it Retry, too.
//
// # Words
//
//	check    an AdmissionCheck whose spec.controllerName is v1alpha1.ManagedByDispatcher
//	gate     such a check with what its MultiKueueConfig names: which workers are allowed
//	session  the controllers and caches that need Kueue's CRDs
//	copy     the registration Secret that stands for a MultiKueueCluster's Secret
//
// # Trade-offs
//
// Kueue's own packages are not used, only its API types (v1beta2): whoever runs another release of
// Kueue that serves them needs no other Jobferry.
//
// Secrets in Kueue's namespace aren't watched: those that are registrations are read once a minute.
// That takes the permission to get them, and keeps no others in memory.
//
// A running Job stays on a worker that its MultiKueueConfig doesn't name any more: an edit of the
// list ends no Pods. Once it's suspended, it goes where it's allowed.
//
// Kueue's own controller for MultiKueueClusters writes their condition Active, too, as long as its
// feature MultiKueue is on. Our checks don't read that condition, and a condition that somebody
// else wrote is left standing for a minute.
package kueue
