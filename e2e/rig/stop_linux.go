package rig

import (
	"errors"

	"golang.org/x/sys/unix"
)

// awaitStop waits until all threads of a child that was told to stop have done so: until then one
// of them may answer yet. The child's end, which somebody else waits for, ends the wait, too.
func awaitStop(pid int) error {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.ECHILD):
			return nil // it has ended
		default:
			return err
		}
	}
}
