package real

import (
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/jobferry/jobferry/e2e/real/sandbox"
)

// Skipped is the exit code that says that nothing was tried, as test harnesses know it.
const Skipped = 77

// CanRun installs what real nodes lack here, if it can. Where that doesn't do, it says so loudly.
func CanRun() bool {
	packages := sandbox.Packages()
	if _, err := exec.LookPath("apt-get"); err == nil && len(packages) > 0 && os.Geteuid() == 0 {
		fmt.Println("install:", strings.Join(packages, " "))
		if err := sandbox.Install(packages); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	missing := sandbox.Missing()
	if len(missing) == 0 {
		return true
	}
	bar := strings.Repeat("*", 78)
	fmt.Fprintf(os.Stderr, "%s\nSKIPPED: REAL NODES WERE NOT TRIED. Nothing was tested on any, as this machine lacks:\n  - %s\n%s\n",
		bar, strings.Join(missing, "\n  - "), bar)
	return false
}
