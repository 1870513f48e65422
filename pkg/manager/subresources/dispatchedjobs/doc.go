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
// # What a Job costs
//
// Users may read Jobs of a megabyte, as often as they like. A row needs some hundred bytes of each.
// The hub can't be asked for these alone: its own tables and metadata lack spec.managedBy and most
// of the status. So NewClient's transport leaves the rest out of an answer before it's in memory
// (slim): it reads protobuf field by field, and keeps those that package jobview reads. It bounds
// what it keeps of an answer. A page that exceeds the bound is read again with fewer Jobs. A few
// answers are held at a time, and fewer for one namespace (turns): who asks for more waits for
// himself, and holds nothing but his rows while his client reads. A watch holds one event or two.
//
// The manager holds the Jobs of its leader's cache, too. But a standby has no such cache, a list
// from one could be older than what its user has just created, and a cache has no versions from
// which a list is continued or a watch begun.
//
// # Reasons
//
// Only events say why a Job waits. Package jobview decides by the newest one. Reading the events
// for each request would cost the hub far more than the Jobs do, so Reasons watches them as long as
// anybody asks. It holds only reasons for which a Job can wait. A namespace gets at most a quarter
// of the free places, because a tenant can write events, too. Of their texts it holds as much as
// users are shown.
//
// # A reason without a change of its Job
//
// Most reasons change while the Job doesn't. A watch then reads the Job, and sends it once more
// with the new reason, as MODIFIED with an unchanged resource version. It does so only if it has
// sent exactly this version before, or begun after it: if the Job is newer, the watch on the hub is
// about to deliver it, and a watch never goes back. Such reads are a few per second and watch,
// however fast events are written. The changes that wait for them are kept once for all watches of
// a namespace, and once for those of all (feeds).
package dispatchedjobs
