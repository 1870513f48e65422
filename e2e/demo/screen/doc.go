// Package screen shows a changing state on a terminal, or writes lines where there is none.
//
// On a terminal the picture is drawn over the last one, on the alternate screen, so that the
// shell's own screen comes back afterwards. A frame is one write, and its unchanged lines are left
// alone: nothing flickers. The terminal's size is asked for each frame, so it follows a resize.
package screen
