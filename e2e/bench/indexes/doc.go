// Package indexes counts how often each index of a Job ran and completed, from what was seen of its
// Pods in all clusters: values in, values out.
//
//	watches of Pods ──Saw, Gone──▶ Record ──Count──▶ Counts
//	a worker is cut off ──Lose──▶
//
// A worker that is cut off goes on for a while. What it completes then the hub can't know, and so
// the index runs again elsewhere: that is counted apart. What the hub had shown as completed before
// may not run again.
package indexes
