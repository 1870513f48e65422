package browser

import (
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/jobferry/jobferry/e2e/real/sandbox"
)

// names of the program, Debian's first.
var names = []string{"chromium", "chromium-browser", "google-chrome"}

func program() string {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// CanRun installs Chromium if it's missing and this is a machine with apt-get and root. Where that
// doesn't do, it says so loudly.
func CanRun() bool {
	if program() != "" {
		return true
	}
	if _, err := exec.LookPath("apt-get"); err == nil && os.Geteuid() == 0 {
		fmt.Println("install: chromium")
		if err := sandbox.Install([]string{"chromium", "fonts-dejavu-core"}); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	if program() != "" {
		return true
	}
	bar := strings.Repeat("*", 78)
	fmt.Fprintf(os.Stderr, "%s\nSKIPPED: THE DASHBOARD WASN'T TRIED IN A BROWSER, as this machine has no Chromium (Debian package chromium).\n%s\n", bar, bar)
	return false
}
