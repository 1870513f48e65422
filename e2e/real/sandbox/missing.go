package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Cgroups is where the cgroup v1 hierarchies are.
const Cgroups = "/sys/fs/cgroup"

// Needs are the files that real nodes need from the system, with the Debian package that brings
// each.
var Needs = map[string]string{
	"/usr/sbin/runc":                     "runc",
	"/usr/lib/cni/ptp":                   "containernetworking-plugins",
	"/usr/lib/cni/host-local":            "containernetworking-plugins",
	"/bin/busybox":                       "busybox-static",
	"/bin/bash-static":                   "bash-static",
	"/usr/sbin/ip":                       "iproute2",
	"/etc/ssl/certs/ca-certificates.crt": "ca-certificates",
}

// Packages are the Debian packages that bring what is missing.
func Packages() []string {
	var packages []string
	seen := map[string]bool{}
	for file, from := range Needs {
		if _, err := os.Stat(file); err != nil && !seen[from] {
			packages, seen[from] = append(packages, from), true
		}
	}
	return packages
}

// Install installs Debian packages.
func Install(packages []string) error {
	args := append([]string{"install", "-y", "--no-install-recommends"}, packages...)
	for _, step := range [][]string{{"update"}, args} {
		cmd := exec.Command("apt-get", step...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("apt-get %s: %w\n%s", strings.Join(step, " "), err, out)
		}
	}
	return nil
}

// Missing says why this machine can't run real nodes; empty: it can.
func Missing() []string {
	var missing []string
	if os.Geteuid() != 0 {
		missing = append(missing, "not root")
	}
	for file, from := range Needs {
		if _, err := os.Stat(file); err != nil {
			missing = append(missing, fmt.Sprintf("%s (of the Debian package %s)", file, from))
		}
	}
	if filesystems, err := os.ReadFile("/proc/filesystems"); err != nil || !strings.Contains(string(filesystems), "overlay") {
		missing = append(missing, "the file system overlay")
	}
	for _, hierarchy := range []string{"cpu", "cpuset", "memory", "pids"} {
		probe := filepath.Join(Cgroups, hierarchy, fmt.Sprintf("%sprobe-%d", prefix, os.Getpid()))
		if err := os.Mkdir(probe, 0o755); err != nil {
			missing = append(missing, "the cgroup v1 hierarchy "+hierarchy+", to be written to")
			continue
		}
		_ = os.Remove(probe) // empty, just made
	}
	return missing
}
