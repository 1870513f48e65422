// Package state is what the demo knows: its own steps, and what the watches on the hub told. It is
// pure: objects and times come in as values, and package view turns the state into text.
//
//	watches ---> Saw... ---> State ---> view (live, plain, result)
//	steps ----> Step... --->   |   ---> Settled, Problems: when the demo ends, and how
//
// All of it is read from the hub. The workers are never asked: what the hub says is what the demo
// is about.
package state
