// Package show renders objects for a terminal. It is pure: objects and the time go in, text comes
// out.
//
//	objects ──> Table, Description ──> Write(w, Palette)
//
// # Vocabulary
//
//   - A tone is the meaning of a cell's colour: good, warning, bad, faint.
//   - A palette maps tones to colours. It is empty unless the output is a terminal.
//   - A timeline holds the events of hub and worker, oldest first.
//
// Ordered tables derive the states, the most important first: a worker that is both cordoned and
// unreachable is unreachable.
//
// # Trade-offs
//
// Tables use the aligning writer of cli-runtime, but not its TablePrinter, which escapes colours.
package show
