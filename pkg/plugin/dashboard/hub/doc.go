// Package hub reads from the hub what the dashboard shows, with the user's own kubeconfig and
// rights.
//
//	watches of Jobs, their events and WorkerClusters ──> feeds ──────> Jobs(), Around(), ...; Changed()
//	its events, and the aggregated API, for the Job that is looked at ──> Details(), Log()
//	Kueue's queues ──────────────────────────────────────────────────> Queues()
//
// A feed is a watch that has a state: it loads, is live, is forbidden or is disconnected. In every
// state, one can read what the feed has read before. The probe knows more: whether the hub answers
// at all, and whether it has Jobferry and Kueue.
//
// # Trade-offs
//
// A feed keeps of an object only what the pages need: of a Job not its Pod template, of the events
// what the last one of each Job says. So thousands of Jobs take a few MB, and whoever writes very
// many events takes none. The events of a Job, and what workers have, are read when somebody looks
// at it, at most every two seconds, however many browser tabs are open. A page waits a second for
// them, then shows what was known: a worker that doesn't answer holds up nothing else.
package hub
