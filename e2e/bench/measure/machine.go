package measure

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"strings"
)

// Machine names what all programs of a run share, such as "2 cores (AMD EPYC, model 17)":
// figures of several machines can't be compared. What /proc/cpuinfo doesn't say is left out.
func Machine() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		text = nil
	}
	return machine(runtime.NumCPU(), string(text))
}

func machine(cores int, cpuinfo string) string {
	fields := map[string]string{}
	for line := range strings.Lines(cpuinfo) {
		name, value, _ := strings.Cut(line, ":")
		name = strings.TrimSpace(name)
		fields[name] = cmp.Or(fields[name], strings.TrimSpace(value))
	}
	about := fields["model name"]
	if model := fields["model"]; about != "" && model != "" {
		about += ", model " + model
	}
	if about == "" {
		return fmt.Sprintf("%d cores", cores)
	}
	return fmt.Sprintf("%d cores (%s)", cores, about)
}
