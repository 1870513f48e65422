// Package objects keeps what a worker's API server decides by when it admits Pods, beside the nodes
// and Pods.
//
//	watches (slim objects) ──> Kind: Set, Remove ──> Store ──> Admission of one namespace ──> package scheduling
//	                                                   └──> callback: something changed
//
// # What is not known
//
// A worker may not allow the hub to read a kind, have more objects of it than the manager holds, or
// take long to list them. Then the kind isn't known, and refuses nothing: a Job is placed as if there
// were no such rule.
package objects
