package product

import (
	"net"

	"github.com/jobferry/jobferry/e2e/rig"
)

// PodsFlags have a manager show Pods on the hub, and serve their logs and commands at a free port.
func PodsFlags() ([]string, error) {
	address, err := rig.FreeAddress()
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(address)
	return []string{"--pods", "--pods-address=" + host, "--pods-port=" + port}, err
}
