// Package jobview derives from a hub Job what users see of it in a table: where it runs, its state, and
// why it waits. It is pure. The plugin and the aggregated API show the same by it.
//
//	Job ────────────────────────┐
//	                            ├──> DispatchedJob ──> Columns ──> cells
//	events ──> Newest ──> Reason┘
//
// Ordered tables derive the state: the first that applies is shown.
//
// Why a Job waits is in Jobferry's events, and not on the Job. The newest event decides: a Job that
// has been placed since doesn't wait for a worker any more. An event counts only for a Job of its own
// namespace. Its UID alone proves nothing, as users can write events about any.
package jobview
