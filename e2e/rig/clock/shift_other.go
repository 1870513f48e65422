//go:build !linux || !amd64

package clock

import (
	"errors"
	"time"
)

// Supported says whether Shift works on this machine.
const Supported = false

// Shift works on Linux on amd64 only.
func Shift(int, time.Duration) error {
	return errors.New("clocks of processes can be shifted on Linux on amd64 only")
}
