package manager

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
)

// DefaultPodsPort is that of kubelets.
const DefaultPodsPort = 10250

// PodsOptions is whether, and where, the hub shows the Pods of mirrors, on Nodes that stand for
// workers.
type PodsOptions struct {
	Enabled bool
	// Address is the IP address of this replica, at which the hub's API server reaches it.
	Address string
	// Port at that address has the kubelet's API of all these Nodes.
	Port int32
	// RequestCertificate asks the hub's signer kubernetes.io/kubelet-serving for the certificate of
	// that API. Until it's issued, and without this, the certificate is self-signed.
	RequestCertificate bool
}

// HostPort is where the kubelet's API is served.
func (o PodsOptions) HostPort() string {
	return net.JoinHostPort(o.Address, strconv.Itoa(int(o.Port)))
}

func (o PodsOptions) validate() error {
	if !o.Enabled {
		return nil
	}
	var errs []error
	if ip, err := netip.ParseAddr(o.Address); err != nil || ip.IsUnspecified() {
		errs = append(errs, fmt.Errorf("pods address: must be an IP address of this replica, not %q", o.Address))
	}
	if o.Port < 1 || o.Port > 1<<16-1 {
		errs = append(errs, fmt.Errorf("pods port: must be from 1 to 65535, not %d", o.Port))
	}
	return errors.Join(errs...)
}
