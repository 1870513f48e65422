package binaries

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
)

// lockRetry is how often a waiting process looks whether the builder has finished.
const lockRetry = 200 * time.Millisecond

// lock takes an exclusive lock on a file, which the kernel gives back even if the holder is killed.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	retry := time.NewTicker(lockRetry)
	defer retry.Stop()
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			f.Close()
			return nil, err
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, ctx.Err()
		case <-retry.C:
		}
	}
}
