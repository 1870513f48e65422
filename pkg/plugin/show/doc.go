// Package show renders for a terminal. It is pure: objects and the time come in, text goes out.
//
//	objects ──> Table, Description ──> Write(w, Palette)
//
// # Vocabulary
//
//   - A tone is what a cell's colour means: good, warning, bad, faint.
//   - A palette turns tones into colours, or, for what isn't a terminal, into nothing.
//   - A time line holds the events of hub and worker, oldest first.
//
// States are derived by ordered tables of what an admin wants to know first: a worker that is both
// cordoned and out of touch is out of touch.
package show
