//go:build !linux

package rig

// awaitStop doesn't wait: only Linux tells of a child's stop and leaves its end to others.
func awaitStop(int) error { return nil }
