// Package jobview derives from a hub Job what users see of it in a table: where it runs, its state,
// and why it waits. It is pure. The plugin and the aggregated API both use it, and so show the
// same.
//
//	Job ────────────────────────┐
//	                            ├──> DispatchedJob ──> Columns ──> cells
//	events ──> Newest ──> Reason┘
//
// Ordered tables derive the state: the first row that applies is shown.
//
// Jobferry's events say why a Job waits. The Job doesn't. The newest event decides: a Job that has
// been placed since doesn't wait for a worker any more. An event counts only for a Job of its own
// namespace. The UID in an event proves nothing, because users can write events about any UID.
package jobview
