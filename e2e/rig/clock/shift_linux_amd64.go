package clock

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"syscall"
	"time"
)

// Supported says whether Shift works on this machine.
const Supported = true

const (
	// attempts is how often a process is stopped anew because one of its threads was just asking
	// for the time.
	attempts = 50
	// stopTime is how long it may take until a program has started, and until all threads of a
	// process have stopped.
	stopTime = time.Second
)

// Shift sets a process's wall clock apart from the machine's by an offset in whole seconds, up to
// 68 years; it replaces an earlier one. The process must be ours and not be stopped. It's stopped
// for about a millisecond.
func Shift(pid int, offset time.Duration) (err error) {
	seconds := int64(offset / time.Second)
	if seconds > math.MaxInt32 || seconds < math.MinInt32 {
		return fmt.Errorf("a clock can't be shifted by %s", offset)
	}
	v, err := awaitVDSO(pid, time.Now().Add(stopTime))
	if err != nil {
		return fmt.Errorf("process %d: %w", pid, err)
	}
	memory, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer memory.Close()
	entry, err := v.clockGettime(memory)
	if err != nil {
		return fmt.Errorf("process %d: %w", pid, err)
	}
	for range attempts {
		written, err := v.replace(pid, memory, entry, function(int32(seconds)))
		if written || err != nil {
			return err
		}
	}
	return fmt.Errorf("process %d never stops asking for the time", pid)
}

// replace writes the function while the process is stopped; not if one of its threads stands in the
// library.
func (v vdso) replace(pid int, memory *os.File, entry uint64, code []byte) (written bool, err error) {
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, syscall.Kill(pid, syscall.SIGCONT)) }()
	threads, err := awaitStop(pid, time.Now().Add(stopTime))
	if err != nil || slices.ContainsFunc(threads, v.holds) {
		return false, err
	}
	_, err = memory.WriteAt(code, int64(entry))
	return err == nil, err
}

// function is clock_gettime(clock in edi, timespec at rsi) with an offset to the wall clock, in
// machine code.
func function(seconds int32) []byte {
	code := []byte{
		0xb8, 228, 0, 0, 0, // mov eax, 228 (the system call's number)
		0x0f, 0x05, // syscall: keeps edi and rsi
		0x85, 0xff, // test edi, edi: 0 is the wall clock
		0x75, 0x07, // jne over the addition
		0x48, 0x81, 0x06, // add qword [rsi], the offset
	}
	code = binary.LittleEndian.AppendUint32(code, uint32(seconds))
	return append(code, 0xc3) // ret
}
