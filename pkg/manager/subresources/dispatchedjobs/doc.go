// Package dispatchedjobs reads hub Jobs as a table that says where they run and why they wait, for
// `kubectl get dispatchedjobs`. It's read-only, and part of the aggregated API of package
// subresources, which authenticates, authorizes and limits its requests.
//
//	                    ┌── List, Watch of hub Jobs ──> jobview.Of ──> objects or rows ──> user
//	request ──> options ┤                                    ▲
//	                    └── Reasons (events of Jobferry) ────┘
//
// # Lists and watches are the hub's
//
// Each request is one for Jobs on the hub, with the user's selectors, limit and resource version.
// So these mean what they mean for Jobs: a list is continued and expires like one of Jobs, and a
// watch continues from a list. The server leaves out Jobs that aren't Jobferry's, so a page of a
// list can be empty and still have a next one. It reads and sends a list without a limit page by
// page, so the manager doesn't hold the whole list.
//
// # Reasons
//
// Only events say why a Job waits. Package jobview decides by the newest one. Reading the events
// for each request would cost the hub far more than the Jobs do, so Reasons watches them as long as
// anybody asks. It holds only reasons for which a Job can wait. A namespace gets at most a quarter
// of the free places, because a tenant can write events, too.
//
// # A reason without a change of its Job
//
// Most reasons change while the Job doesn't. A watch then reads the Job, and sends it once more
// with the new reason, as MODIFIED with an unchanged resource version. It does so only if it has
// sent exactly this version before, or begun after it: if the Job is newer, the watch on the hub is
// about to deliver it, and a watch never goes back. Such reads are a few per second and watch,
// however fast events are written.
package dispatchedjobs
