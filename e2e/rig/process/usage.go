package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Usage is what a process has used since it began.
type Usage struct {
	// CPU is the time in user and kernel mode.
	CPU time.Duration
	// RSS is the memory held now, PeakRSS the most that was held, in bytes.
	RSS, PeakRSS int64
}

// tick is the unit of times in /proc, fixed for user space on all architectures that Go supports.
const tick = time.Second / 100

// UsageOf reads the usage of a process from /proc.
func UsageOf(pid int) (Usage, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Usage{}, err
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Usage{}, err
	}
	return parseUsage(stat, string(status))
}

func parseUsage(stat []byte, status string) (Usage, error) {
	// The program's name, the second field, may have anything in it, but ends at the last
	// parenthesis.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	const user, system = 11, 12 // fields 14 and 15 of proc(5), counted from the third
	if len(fields) <= system {
		return Usage{}, errors.New("read CPU time: too few fields")
	}
	inUser, err1 := strconv.ParseInt(fields[user], 10, 64)
	inSystem, err2 := strconv.ParseInt(fields[system], 10, 64)
	rss, err3 := kilobytes(status, "VmRSS:")
	peak, err4 := kilobytes(status, "VmHWM:")
	u := Usage{CPU: time.Duration(inUser+inSystem) * tick, RSS: rss, PeakRSS: peak}
	return u, errors.Join(err1, err2, err3, err4)
}

func kilobytes(status, field string) (int64, error) {
	for line := range strings.Lines(status) {
		if value, found := strings.CutPrefix(line, field); found {
			n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
			return n << 10, err
		}
	}
	return 0, fmt.Errorf("no field %s", field)
}
