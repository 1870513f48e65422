// Package spans derives the trace of a hub Job from the Job itself. It's pure.
//
//	hub Job before and after a write ──▶ Phases ──▶ waiting, running, the root
//	what a reconcile has just done   ──▶ Span   ──▶ placing, mirroring, reflecting, moving
//	UID                              ──▶ Identity, Sampled
//
// # One trace over all managers
//
// A Job may live for weeks, and several managers may lead meanwhile. So no manager has an open
// span: it makes a span when the span's end is known, from times in the objects. Managers needn't
// pass a context to each other either. The trace ID is the Job's UID, the root's ID follows from
// it, and a span's ID follows from its name, worker and start. Two managers that report the same
// phase report the same span. This costs no request and needs no annotation. The API server chooses
// UIDs, so no user can have a Job shown in the trace of another.
//
// # What users and workers can do
//
// The annotation jobferry.dev/traceparent is a user's: it becomes a link of the root, if it's a W3C
// trace context, and decides nothing else, such as what is sampled. Times that come from a worker
// are kept between the Job's creation and now.
package spans
