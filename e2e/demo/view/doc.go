// Package view turns the demo's state into text. It is pure: the state, the size of the terminal
// and the time come in as values, lines come out; golden files in testdata show what they look
// like.
//
//	Frame(state, now, Options)   one picture that fits the terminal, to be drawn over the last one
//	Changes(before, after)       for anything but a terminal: one plain line for each visible change
//	Result(state, now, Options)  the table at the end
//
// Vocabulary:
//   - span: text of one style; a line is a row of spans.
//   - column: of a table; when the width doesn't suffice, columns are left out by rank, the bar
//     takes what is left.
//
// Trade-off: a character is taken to be one cell wide. That's true of everything the demo prints
// itself; an event's text in another script could be cut too late.
package view
