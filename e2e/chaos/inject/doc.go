// Package inject carries out the faults of a schedule on a fleet: a table says, for each kind, how
// it begins and how it is healed.
package inject
