// Package schedule draws the faults of a chaos run. It is pure: a seed and a few numbers make the
// same schedule, on any machine, so that a run can be replayed.
//
//	seed, fleet, number of faults ---> Faults: when, what, where, for how long
//
// A fault hits a part of a target, such as the link of a worker. No part has two faults at a time;
// parts of one target may, and targets always. Faults that outlast the time after which a worker
// counts as lost come one at a time, so that there is somewhere for its Jobs to go; a copy of the
// hub comes alone, too.
package schedule
