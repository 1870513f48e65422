// Package report prints what came out of a chaos run: a table, and for each violation the time line
// of its Job with the faults around it.
package report
