// Package events writes the manager's events to the hub's API server.
package events
