// Package mirror decides what a hub Job and its mirror in a worker need from each other. It is
// pure: values in, values out; no client, no context, no logger, and the time is an argument.
//
//	hub Job ──Project──▶ mirror to create
//	hub Job, mirror ──Drift──▶ None | Patch | PatchRecent | Recreate | Refuse
//	hub Job, mirror, now ──Reflect──▶ Next | Unchanged | Deferred | Violation
//	hub Job without mirror, now ──Unplaced──▶ Next | Unchanged
//	hub Job ──Seed──▶ the status that a moved mirror starts from
//	hub Job, worker, move ──PlacementChanges──▶ what changes of what is kept
//	hub Job as it was sent, mirror ──Whole──▶ mirror with what the types don't know
//
// # Words
//
//   - hub Job: the user's Job; it has no Pods
//   - mirror: the Job in the worker that a Job controller runs
//   - origin: the id of a hub; with the hub Job's UID it proves that Jobferry created a mirror
//   - verdict: the result of Reflect
//   - step: a function that brings a worker's status into the form that the hub's API server wants
//   - rule: a condition that a status must satisfy before the manager writes it
//
// # Reflect
//
// A mirror's status is input from outside. It passes three tables, in order, and the first broken
// rule decides:
//
//	inputRules  the worker's status is well-formed and bounded
//	steps       clamp, trim, complete, hold back: they make the hub's next status
//	nextRules   the API server's rules for jobs/status (1.33 to 1.37), and Jobferry's own
//
// The steps should produce a valid status. The rules check it nevertheless, so that a mistake in a
// step becomes a named Violation and not a write that the hub rejects for ever. They are stricter
// than the API server's: it checks most rules only if the field in question changes, nextRules
// check always.
//
// Once a condition that leads to the end is True on the hub, no worker changes it. A worker causes
// only a few visible transitions per Job, however often its status changes.
//
// # Drift
//
// The hub's API server has already decided which changes a Job allows. So Drift looks only at the
// fields that can change. It compares scalars such as suspend and parallelism with the mirror's,
// and the hub wins. For the scheduling directives and the Pods' resources, an annotation of the
// mirror (jobferry.dev/projected) records what the hub wanted when the manager last wrote them. If
// that record is up to date, any difference comes from the worker's admission: Drift leaves it, and
// names it if it is more than defaults and additions. The price is that Drift names, and doesn't
// undo, an edit of a suspended mirror's node selector in the worker. It can't tell the edit from a
// webhook's, and a fight with a webhook would never end.
//
// Recent fields (package recentfields) may be unknown to the types, so Drift compares fingerprints
// of them: the hub Job's with those in the record. A mirror that has stopped is made anew when they
// differ. One that runs is patched, but for fields in lists.
package mirror
