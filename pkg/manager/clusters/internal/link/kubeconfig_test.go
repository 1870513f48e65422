package link

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/util/boundtoken"
)

// kubeconfig is a good one, with changes.
func kubeconfig(t *testing.T, changes ...func(*clientcmdapi.Config)) []byte {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: "https://worker.example.com:6443"}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: "token"}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	for _, change := range changes {
		change(config)
	}
	raw, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func user(change func(*clientcmdapi.AuthInfo)) func(*clientcmdapi.Config) {
	return func(c *clientcmdapi.Config) { change(c.AuthInfos["u"]) }
}

func cluster(change func(*clientcmdapi.Cluster)) func(*clientcmdapi.Config) {
	return func(c *clientcmdapi.Config) { change(c.Clusters["c"]) }
}

func server(url string) func(*clientcmdapi.Config) {
	return cluster(func(c *clientcmdapi.Cluster) { c.Server = url })
}

func TestParseKubeconfigAccepts(t *testing.T) {
	for name, raw := range map[string][]byte{
		"a token":      kubeconfig(t),
		"base path":    kubeconfig(t, server("https://rancher.example.com/k8s/clusters/c-1")),
		"a proxy":      kubeconfig(t, cluster(func(c *clientcmdapi.Cluster) { c.ProxyURL = "http://proxy.example.com:3128" })),
		"impersonates": kubeconfig(t, user(func(u *clientcmdapi.AuthInfo) { u.Impersonate = "jobferry" })),
		"others may do what they like": kubeconfig(t, func(c *clientcmdapi.Config) {
			c.AuthInfos["other"] = &clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{Command: "true"}}
		}),
	} {
		config, err := ParseKubeconfig(raw)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if config.BearerToken != "token" || !strings.HasPrefix(config.Host, "https://") {
			t.Errorf("%s: %v", name, config)
		}
	}
}

func TestParseKubeconfigRefuses(t *testing.T) {
	const missing, invalid, refused = v1alpha1.ReasonKubeconfigMissing, v1alpha1.ReasonKubeconfigInvalid, v1alpha1.ReasonKubeconfigRefused
	for _, c := range []struct {
		name   string
		raw    []byte
		reason string
		field  string
	}{
		{"nothing", []byte(" \n"), missing, ""},
		{"rubbish", []byte("rubbish: ["), invalid, ""},
		{"another object", []byte("apiVersion: v1\nkind: Pod\n"), invalid, ""},
		{"too much", make([]byte, boundtoken.MaxKubeconfigBytes+1), invalid, ""},
		{"no context", kubeconfig(t, func(c *clientcmdapi.Config) { c.CurrentContext = "" }), invalid, "current-context"},
		{"another context", kubeconfig(t, func(c *clientcmdapi.Config) { c.CurrentContext = "y" }), invalid, "current-context"},
		{"no cluster", kubeconfig(t, func(c *clientcmdapi.Config) { delete(c.Clusters, "c") }), invalid, "contexts[x].cluster"},
		{"no user", kubeconfig(t, func(c *clientcmdapi.Config) { delete(c.AuthInfos, "u") }), invalid, "contexts[x].user"},
		{"exec", kubeconfig(t, user(func(u *clientcmdapi.AuthInfo) {
			u.Exec = &clientcmdapi.ExecConfig{Command: "true", APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: "Never"}
		})), refused, "users[u].user.exec"},
		{"auth provider", kubeconfig(t, user(func(u *clientcmdapi.AuthInfo) { u.AuthProvider = &clientcmdapi.AuthProviderConfig{Name: "oidc"} })),
			refused, "users[u].user.auth-provider"},
		{"token file", kubeconfig(t, user(func(u *clientcmdapi.AuthInfo) { u.TokenFile = "/var/run/token" })), refused, "users[u].user.tokenFile"},
		{"certificate file", kubeconfig(t, user(func(u *clientcmdapi.AuthInfo) { u.ClientCertificate = "/a" })), refused, "users[u].user.client-certificate"},
		{"key file", kubeconfig(t, user(func(u *clientcmdapi.AuthInfo) { u.ClientKey = "/a" })), refused, "users[u].user.client-key"},
		{"CA file", kubeconfig(t, cluster(func(c *clientcmdapi.Cluster) { c.CertificateAuthority = "/a" })), refused, "clusters[c].cluster.certificate-authority"},
		{"insecure", kubeconfig(t, cluster(func(c *clientcmdapi.Cluster) { c.InsecureSkipTLSVerify = true })), refused, "clusters[c].cluster.insecure-skip-tls-verify"},
		{"plain http", kubeconfig(t, server("http://worker.example.com")), refused, "clusters[c].cluster.server"},
		{"no server", kubeconfig(t, server("")), invalid, "clusters[c].cluster.server"},
		{"no scheme", kubeconfig(t, server("worker.example.com")), invalid, "clusters[c].cluster.server"},
		{"user in the URL", kubeconfig(t, server("https://a:b@worker.example.com")), invalid, "clusters[c].cluster.server"},
		{"no credentials", kubeconfig(t, user(func(u *clientcmdapi.AuthInfo) { u.Token = "" })), invalid, "users[u].user.token"},
		{"a bad CA", kubeconfig(t, cluster(func(c *clientcmdapi.Cluster) { c.CertificateAuthorityData = []byte("x") })), invalid, ""},
		{"a bad proxy", kubeconfig(t, cluster(func(c *clientcmdapi.Cluster) { c.ProxyURL = "ftp://proxy" })), invalid, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ParseKubeconfig(c.raw)
			var refusal *kubeconfigError
			if !errors.As(err, &refusal) {
				t.Fatalf("error %v (%T)", err, err)
			}
			if refusal.Reason != c.reason || refusal.Field != c.field || len(refusal.Error()) < 10 {
				t.Errorf("reason %q, field %q, want %q, %q: %v", refusal.Reason, refusal.Field, c.reason, c.field, refusal)
			}
		})
	}
}

func FuzzParseKubeconfig(f *testing.F) {
	f.Add([]byte("apiVersion: v1\nkind: Config\ncurrent-context: x\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		config, err := ParseKubeconfig(raw)
		var refusal *kubeconfigError
		switch {
		case err != nil && !errors.As(err, &refusal):
			t.Errorf("error of type %T", err)
		case err == nil && (config.ExecProvider != nil || config.Insecure || config.BearerTokenFile != "" || !strings.HasPrefix(config.Host, "https://")):
			t.Errorf("accepted: %v", config)
		}
	})
}
