package clock

import (
	"bufio"
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// vdso is where the library lies in a process.
type vdso struct{ from, to uint64 }

// awaitVDSO finds the library; a program that was just started has it a moment later.
func awaitVDSO(pid int, until time.Time) (vdso, error) {
	for {
		v, err := findVDSO(pid)
		if !errors.Is(err, errNone) || time.Now().After(until) {
			return v, err
		}
		runtime.Gosched() // nothing tells when
	}
}

var errNone = errors.New("it has no vDSO")

func findVDSO(pid int) (vdso, error) {
	maps, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return vdso{}, err
	}
	defer maps.Close()
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		line := lines.Text()
		if !strings.HasSuffix(line, "[vdso]") {
			continue
		}
		var v vdso
		_, err := fmt.Sscanf(line, "%x-%x", &v.from, &v.to)
		return v, err
	}
	return vdso{}, errNone
}

// clockGettime is the address of the function in the process.
func (v vdso) clockGettime(memory *os.File) (uint64, error) {
	image := make([]byte, v.to-v.from)
	if _, err := memory.ReadAt(image, int64(v.from)); err != nil {
		return 0, fmt.Errorf("read the vDSO: %w", err)
	}
	library, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return 0, fmt.Errorf("the vDSO: %w", err)
	}
	symbols, err := library.DynamicSymbols()
	if err != nil {
		return 0, fmt.Errorf("the vDSO: %w", err)
	}
	for _, s := range symbols {
		if s.Name == "__vdso_clock_gettime" {
			return v.from + s.Value, nil
		}
	}
	return 0, errors.New("the vDSO has no clock_gettime")
}

// holds says whether an address is in the library.
func (v vdso) holds(address uint64) bool { return address >= v.from && address < v.to }
