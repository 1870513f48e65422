// Package stockout remembers in which workers Pods of some shape didn't start in time, so that
// other Jobs aren't sent there to wait as long. It is pure: the clock comes in as a value.
//
//	Failed: no Pod of a Job started in time ──> the worker is out for the shape ──┐
//	                                                ▲                             │ after a while
//	Started: a Pod of that shape did ──> forgotten  └── Failed ── one Job tries <─┘
//
// The while is the worker's own timeout at first, and doubles with each further failure, up to
// maxWhile. When it's over, one Job is sent there, and the others follow when a Pod of it has
// started. Jobs that run elsewhere, and would rather run there, don't try unless nobody else has
// for maxWhile.
//
// A shape is what the scheduler looks at in a Pod (see Fingerprint). Pods of one shape may still
// differ by what only their namespace has: other Pods there may not want their labels beside them,
// and policies may refuse them. So a failure counts for Jobs of its namespace, and for those of all
// only while the worker is out for two namespaces: tenants choose shapes, but one alone hurts
// nobody else. Of more than maxShapes in a worker, those of the namespace with the most are
// forgotten first. A start counts for all.
//
// What outlives the manager are Entries, in the status of the WorkerCluster, which neither tenants
// nor workers write. Which Job tries isn't among them: the others wait for the end of its time.
package stockout
