package sandbox

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// link is the network link that all addresses of the sandbox are on: a kubelet refuses to have its
// node on loopback.
const link = "jf0"

// gateway is the address by which the sandbox's default route goes: plugins and API servers look
// for one.
const gateway = "10.99.0.254/24"

// sysctls are what a kubelet wants of the machine, and would write. They're covered by files that
// say so already.
var sysctls = map[string]string{
	"vm/overcommit_memory": "1", "vm/panic_on_oom": "0", "kernel/panic": "10", "kernel/panic_on_oops": "1",
	"kernel/keys/root_maxkeys": "1000000", "kernel/keys/root_maxbytes": "25000000",
}

// Prepare makes a sandbox of the namespaces that this process is the first in.
func Prepare() error {
	if err := Private(); err != nil {
		return err
	}
	if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("/proc: %w", err)
	}
	if err := syscall.Mount("tmpfs", "/run", "tmpfs", 0, "mode=755"); err != nil {
		return fmt.Errorf("/run: %w", err)
	}
	for _, dir := range []string{"/run/netns", "/run/lock"} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	for _, command := range []string{
		"link set lo up",
		"link add " + link + " type veth peer name jf1",
		"link set " + link + " up", "link set jf1 up",
		"addr add " + gateway + " dev " + link,
		"route add default dev " + link,
	} {
		if err := ip(command); err != nil {
			return err
		}
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644); err != nil {
		return err // of this network namespace, not the machine's
	}
	return coverSysctls()
}

// Address gives the sandbox another address.
func Address(prefix netip.Prefix) error { return ip("addr add " + prefix.String() + " dev " + link) }

func ip(command string) error {
	if out, err := exec.Command("/usr/sbin/ip", strings.Fields(command)...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", command, err, out)
	}
	return nil
}

func coverSysctls() error {
	for name, value := range sysctls {
		file := filepath.Join("/run", "sysctl-"+strings.ReplaceAll(name, "/", "-"))
		if err := os.WriteFile(file, []byte(value+"\n"), 0o644); err != nil {
			return err
		}
		if err := syscall.Mount(file, filepath.Join("/proc/sys", name), "", syscall.MS_BIND, ""); err != nil {
			return fmt.Errorf("sysctl %s: %w", name, err)
		}
	}
	return nil
}
