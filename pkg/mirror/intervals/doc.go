// Package intervals holds sets of completion indexes, as a Job's status shows them: "0-2,5". It is
// pure.
//
// A text is read in one of two ways. ParseStrict is for what a worker reports: it refuses anything
// that isn't well-formed and bounded. ParseLenient is for what a Job controller reads back from its
// own Job: as the built-in controller does, it skips what is damaged, so that the Job continues.
//
// A long text is read once, and kept with what it says for as long as it's read again and again.
package intervals
