// Package events writes events to the hub's API server, in the background.
package events
