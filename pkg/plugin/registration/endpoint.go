package registration

import (
	"cmp"
	"fmt"
	"net"
	"net/url"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Endpoint is how the hub reaches a worker's API server.
type Endpoint struct {
	Server string
	// CA is PEM; empty: the authorities that the manager's machine trusts.
	CA []byte
	// TLSServerName is the name in the server's certificate; empty: the host's.
	TLSServerName string
	// ProxyURL is the proxy in between; empty: none.
	ProxyURL string
}

// EndpointOf returns the endpoint of a context of a flattened kubeconfig. A server that isn't empty
// replaces the context's address.
func EndpointOf(config *clientcmdapi.Config, context, server string) (Endpoint, error) {
	chosen, ok := config.Contexts[context]
	if !ok {
		return Endpoint{}, fmt.Errorf("the kubeconfig has no context %q: kubectl config get-contexts lists them", context)
	}
	cluster, ok := config.Clusters[chosen.Cluster]
	if !ok {
		return Endpoint{}, fmt.Errorf("context %q: the kubeconfig has no cluster %q", context, chosen.Cluster)
	}
	endpoint := Endpoint{
		Server: cmp.Or(server, cluster.Server), CA: cluster.CertificateAuthorityData,
		TLSServerName: cluster.TLSServerName, ProxyURL: cluster.ProxyURL,
	}
	if cluster.InsecureSkipTLSVerify {
		return Endpoint{}, fmt.Errorf("context %q skips TLS verification, which the hub's manager refuses: set the cluster's certificate-authority-data", context)
	}
	return endpoint, endpoint.check()
}

func (e Endpoint) check() error {
	u, err := url.Parse(e.Server)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" {
		return fmt.Errorf("server %q: it must be a URL such as https://worker.example.com:6443; set it by --server", e.Server)
	}
	return nil
}

// Loopback reports whether the server's address is local to each machine.
func (e Endpoint) Loopback() bool {
	u, err := url.Parse(e.Server)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && (ip.IsLoopback() || ip.IsUnspecified())
}

// Kubeconfig returns the kubeconfig for the hub, which has only a server and a token.
func (e Endpoint) Kubeconfig(name, token string) ([]byte, error) {
	config := &clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{name: {
			Server: e.Server, CertificateAuthorityData: e.CA, TLSServerName: e.TLSServerName, ProxyURL: e.ProxyURL,
		}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {Token: token}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	}
	return clientcmd.Write(*config)
}
