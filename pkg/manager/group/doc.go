// Package group says which Jobs belong together, and in which worker. It is pure: values in, values
// out.
//
//	hub Job ──> Kinds.Of ──> ID: its group
//	                         Members: where the Jobs of a group are ──> Places, Elsewhere
//	JobSet  ──> JobSet.Jobs: those that it will have
//	                         Kinship: Jobs that are alike ──> Kin
//
// A group is derived from the hub's Jobs at any time; there is no object of it. Its Jobs run in one
// worker: that of the newest placement of those that haven't finished.
//
// # Moves
//
// A Job that moves takes its group along: once its new placement is written, the others belong
// there. It gets no mirror there while another Job of its group is elsewhere. So whatever dies
// halfway through a move, no two Jobs of a group run in two workers.
package group
