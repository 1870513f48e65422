package rig

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Every kubeconfig carries its certificates and keys inline: it can be copied into a Secret as it
// is.

// tokenLifetime of the tokens in ServiceAccountKubeconfig.
const tokenLifetime = 24 * time.Hour

// Kubeconfig is the name of a file with the cluster administrator's kubeconfig.
func (c *Cluster) Kubeconfig() string { return c.adminFile }

// KubeconfigBytes is the content of that file.
func (c *Cluster) KubeconfigBytes() []byte { return c.admin }

// ProxyKubeconfigBytes is the administrator's kubeconfig that leads through the fault-injecting
// proxy. It panics if the cluster was started without Options.FaultProxy.
func (c *Cluster) ProxyKubeconfigBytes() []byte {
	c.Proxy() // check
	return c.proxied
}

// ThroughProxy changes a kubeconfig of this cluster to one that leads through the fault-injecting
// proxy. It panics if the cluster was started without Options.FaultProxy.
func (c *Cluster) ThroughProxy(kubeconfig []byte) ([]byte, error) {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, err
	}
	for _, cluster := range config.Clusters {
		cluster.Server = "https://" + c.Proxy().Address()
	}
	return clientcmd.Write(*config)
}

// UserKubeconfigBytes is a kubeconfig with a client certificate of a user in the given groups.
func (c *Cluster) UserKubeconfigBytes(user string, groups ...string) ([]byte, error) {
	return c.certificateKubeconfig(user, groups...)
}

// UserRESTConfig is the configuration of such a user, without a client-side rate limit.
func (c *Cluster) UserRESTConfig(user string, groups ...string) (*rest.Config, error) {
	kubeconfig, err := c.UserKubeconfigBytes(user, groups...)
	if err != nil {
		return nil, err
	}
	return restConfig(kubeconfig)
}

// ServiceAccountKubeconfig asks the API server for a token of an existing ServiceAccount, and
// returns a kubeconfig that uses it. The token is valid for a day.
func (c *Cluster) ServiceAccountKubeconfig(ctx context.Context, namespace, name string) ([]byte, error) {
	seconds := int64(tokenLifetime / time.Second)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	answer, err := c.Client().CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("token of %s/%s: %w", namespace, name, err)
	}
	return c.kubeconfig(clientcmdapi.AuthInfo{Token: answer.Status.Token})
}

// MergeKubeconfigs is a kubeconfig with a context for each of some clusters, of the cluster's name
// and for its administrator. The first one is the current one.
func MergeKubeconfigs(clusters ...*Cluster) ([]byte, error) {
	merged := clientcmdapi.NewConfig()
	merged.CurrentContext = clusters[0].Name()
	for _, c := range clusters {
		one, err := clientcmd.Load(c.KubeconfigBytes())
		if err != nil {
			return nil, err
		}
		name := c.Name()
		merged.Clusters[name], merged.AuthInfos[name], merged.Contexts[name] = one.Clusters[name], one.AuthInfos[name], one.Contexts[name]
	}
	return clientcmd.Write(*merged)
}

// RESTConfig is the administrator's configuration for clients, without a client-side rate limit.
// Each call returns a new one.
func (c *Cluster) RESTConfig() *rest.Config { return rest.CopyConfig(c.rest) }

// ProxyRESTConfig is RESTConfig through the fault-injecting proxy.
func (c *Cluster) ProxyRESTConfig() *rest.Config {
	config := c.RESTConfig()
	config.Host = "https://" + c.Proxy().Address()
	return config
}

func (c *Cluster) endpoint() string { return "https://" + c.apiPort.Address() }

func (c *Cluster) certificateKubeconfig(user string, groups ...string) ([]byte, error) {
	pair, err := c.credentials.authority.Client(user, groups...)
	if err != nil {
		return nil, err
	}
	return c.kubeconfig(clientcmdapi.AuthInfo{
		ClientCertificateData: pair.Certificate, ClientKeyData: pair.Key,
	})
}

func (c *Cluster) kubeconfig(user clientcmdapi.AuthInfo) ([]byte, error) {
	name := c.Name()
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{
		Server: c.endpoint(), CertificateAuthorityData: c.credentials.authority.PEM,
	}
	config.AuthInfos[name] = &user
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	return clientcmd.Write(*config)
}

func restConfig(kubeconfig []byte) (*rest.Config, error) {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	config.UserAgent = "jobferry-rig"
	return config, nil
}
