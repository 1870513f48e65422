// Package fields tests that no field of a Job's spec gets lost between a hub and a worker of other
// releases, or with other feature gates: random Jobs of all fields, and fields that workers drop.
package fields
