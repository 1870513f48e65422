// Package spans derives the trace of a hub Job from the Job itself. It's pure.
//
//	hub Job before and after a write ──▶ Phases ──▶ waiting, running, the root
//	what a reconcile has just done   ──▶ Span   ──▶ placing, mirroring, reflecting, moving
//	UID                              ──▶ Identity, Sampled
//
// # One trace over all managers
//
// A Job may live for weeks, and managers come and go meanwhile. So no span is open anywhere: it's made
// when its end is known, from times that the objects have. And no context has to be handed over: the
// trace ID is the Job's UID, the root's ID follows from it, and a span's ID from its name, worker and
// start. Two managers that report the same phase report the same span. This costs no request, needs no
// annotation, and nobody with rights on Jobs can have theirs shown in the trace of another, since the
// API server chooses UIDs.
//
// # What users and workers can do
//
// The annotation jobferry.dev/traceparent is a user's: it becomes a link of the root, if it's a W3C
// trace context, and decides nothing else, such as what is sampled. Times that come from a worker are
// kept between the Job's creation and now.
package spans
