// Package mirror decides what a hub Job and its mirror in a worker cluster owe each other. It is
// pure: values in, values out; no client, no context, no logger, and the clock comes in as a value.
//
//	hub Job ──Project──▶ mirror to create
//	hub Job, mirror ──Drift──▶ None | Patch | Recreate | Refuse
//	hub Job, mirror, now ──Reflect──▶ Next | Unchanged | Deferred | Violation
//	hub Job without mirror, now ──Unplaced──▶ Next | Unchanged
//	hub Job ──Seed──▶ the status that a moved mirror starts from
//
// # Words
//
// The hub Job is the user's Job; it has no Pods. Its mirror is the Job in the worker that a Job
// controller runs. The origin is the id of a hub; together with the hub Job's UID it proves that a
// mirror is ours (see Owns). A step brings a worker's status into the form that the hub's API
// server wants; a rule is something that a status must satisfy before it's written.
//
// # Reflect
//
// A mirror's status is input from outside. It goes through three tables, in order, and the first
// rule that's broken wins:
//
//	inputRules    what the worker says is well-formed and bounded
//	steps         clamp, trim, synthesize, hold: the hub's next status takes shape
//	outcomeRules  the API server's rules for jobs/status (1.32 to 1.36), and ours
//
// The outcome is checked even though the steps should make it right: a mistake in a step becomes a
// named Violation instead of a write that the hub rejects for ever. The rules are a little stricter
// than the API server's: it checks most of them only when the field in question changes, we check
// them always.
//
// Once a condition that leads to the end is True on the hub, nothing a worker says changes it; a
// worker can cause only a few visible transitions per Job, however it flaps.
//
// # Drift
//
// The hub's API server has already decided what of a Job may change. So Drift looks for changes
// only in fields that can change: scalars such as suspend and parallelism are compared with the
// mirror's, and the hub wins; for the scheduling directives and Pod resources a record on the
// mirror (annotation jobferry.dev/projected) says what the hub wanted when they were last written.
// An equal record means that any difference is the work of the worker's admission: it's left alone,
// and named if it's more than defaulting or additions. The price: an edit of a suspended mirror's
// node selector by someone in the worker is named, not undone, because it can't be told from a
// webhook's work, and fighting a webhook would never end.
package mirror
