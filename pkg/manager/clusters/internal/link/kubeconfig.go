package link

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/util/boundtoken"
)

// kubeconfigError says why a kubeconfig isn't used.
type kubeconfigError struct {
	// Reason is a reason of the WorkerCluster's Ready condition.
	Reason string
	// Field is where the fault lies, such as users[0].user.exec; empty when it lies in the
	// kubeconfig as a whole.
	Field string
	// Problem says what is wrong and what to do instead.
	Problem string
}

// Error names the field and the problem.
func (e *kubeconfigError) Error() string {
	if e.Field == "" {
		return e.Problem
	}
	return e.Field + ": " + e.Problem
}

// selection is the part of a kubeconfig that its current context leads to.
type selection struct {
	cluster      *clientcmdapi.Cluster
	user         *clientcmdapi.AuthInfo
	clusterField string
	userField    string
}

// ParseKubeconfig turns the kubeconfig of a registration Secret into a client configuration. Only
// the current context counts. Every error is a *kubeconfigError.
//
// A kubeconfig is input from whoever may write Secrets in the manager's namespace, and is used
// inside the manager's process: what would run programs, read the manager's files, or send
// credentials to an unproven server is refused. Impersonation and proxy-url are allowed: both only
// name whom to ask.
func ParseKubeconfig(raw []byte) (*rest.Config, error) {
	config, err := loadKubeconfig(raw)
	if err != nil {
		return nil, err
	}
	chosen, err := selectCurrent(config)
	if err != nil {
		return nil, err
	}
	for _, rule := range kubeconfigRules {
		if field, found := rule.violatedAt(chosen); found {
			return nil, &kubeconfigError{Reason: rule.reason, Field: field, Problem: rule.problem}
		}
	}
	restConfig, err := clientcmd.NewNonInteractiveClientConfig(*config, config.CurrentContext, nil, nil).ClientConfig()
	if err != nil {
		return nil, invalid("", "%v", err)
	}
	if _, err := rest.TLSConfigFor(restConfig); err != nil {
		return nil, invalid("", "the certificates don't fit together: %v", err)
	}
	return restConfig, nil
}

func loadKubeconfig(raw []byte) (*clientcmdapi.Config, error) {
	if len(strings.TrimSpace(string(raw))) == 0 {
		return nil, &kubeconfigError{Reason: v1alpha1.ReasonKubeconfigMissing, Problem: "it is empty: put the worker's kubeconfig there"}
	}
	config, err := boundtoken.LoadKubeconfig(raw)
	if err != nil {
		return nil, invalid("", "it is no kubeconfig: %v", firstLine(err))
	}
	return config, nil
}

func selectCurrent(config *clientcmdapi.Config) (selection, error) {
	name := config.CurrentContext
	if name == "" {
		return selection{}, invalid("current-context", "it is not set: name the context to use")
	}
	current, ok := config.Contexts[name]
	if !ok {
		return selection{}, invalid("current-context", "there is no context %q", name)
	}
	cluster, ok := config.Clusters[current.Cluster]
	if !ok {
		return selection{}, invalid(fmt.Sprintf("contexts[%s].cluster", name), "there is no cluster %q", current.Cluster)
	}
	user, ok := config.AuthInfos[current.AuthInfo]
	if !ok {
		return selection{}, invalid(fmt.Sprintf("contexts[%s].user", name), "there is no user %q", current.AuthInfo)
	}
	return selection{
		cluster:      cluster,
		user:         user,
		clusterField: fmt.Sprintf("clusters[%s].cluster.", current.Cluster),
		userField:    fmt.Sprintf("users[%s].user.", current.AuthInfo),
	}, nil
}

// kubeconfigRule refuses one thing that a kubeconfig may ask for.
type kubeconfigRule struct {
	reason string
	// violatedAt answers with the field that breaks the rule.
	violatedAt func(selection) (field string, found bool)
	problem    string
}

// kubeconfigRules are checked in order; the first violation is reported. What is refused on
// principle comes before what is merely unusable.
var kubeconfigRules = []kubeconfigRule{
	{v1alpha1.ReasonKubeconfigRefused, inUser("exec", func(u *clientcmdapi.AuthInfo) bool { return u.Exec != nil }),
		"the manager runs no credential plugin: use a ServiceAccount token or a client certificate"},
	{v1alpha1.ReasonKubeconfigRefused, inUser("auth-provider", func(u *clientcmdapi.AuthInfo) bool { return u.AuthProvider != nil }),
		"the manager runs no authentication provider: use a ServiceAccount token or a client certificate"},
	{v1alpha1.ReasonKubeconfigRefused, inUser("tokenFile", func(u *clientcmdapi.AuthInfo) bool { return u.TokenFile != "" }),
		"the manager reads no files: put the token in the field token"},
	{v1alpha1.ReasonKubeconfigRefused, inUser("client-certificate", func(u *clientcmdapi.AuthInfo) bool { return u.ClientCertificate != "" }),
		"the manager reads no files: put the certificate in client-certificate-data (kubectl config view --flatten --minify does so)"},
	{v1alpha1.ReasonKubeconfigRefused, inUser("client-key", func(u *clientcmdapi.AuthInfo) bool { return u.ClientKey != "" }),
		"the manager reads no files: put the key in client-key-data (kubectl config view --flatten --minify does so)"},
	{v1alpha1.ReasonKubeconfigRefused, inCluster("certificate-authority", func(c *clientcmdapi.Cluster) bool { return c.CertificateAuthority != "" }),
		"the manager reads no files: put the CA in certificate-authority-data (kubectl config view --flatten --minify does so)"},
	{v1alpha1.ReasonKubeconfigRefused, inCluster("insecure-skip-tls-verify", func(c *clientcmdapi.Cluster) bool { return c.InsecureSkipTLSVerify }),
		"the server must prove who it is: remove this, and put its CA in certificate-authority-data"},
	{v1alpha1.ReasonKubeconfigRefused, inCluster("server", plainHTTP),
		"the scheme must be https: credentials and Jobs don't travel in the clear"},
	{v1alpha1.ReasonKubeconfigInvalid, inCluster("server", unusableServer),
		"it must be a URL such as https://worker.example.com:6443"},
	{v1alpha1.ReasonKubeconfigInvalid, inUser("token", withoutCredentials),
		"there are no credentials: set token, or client-certificate-data and client-key-data"},
}

func inUser(field string, violated func(*clientcmdapi.AuthInfo) bool) func(selection) (string, bool) {
	return func(s selection) (string, bool) { return s.userField + field, violated(s.user) }
}

func inCluster(field string, violated func(*clientcmdapi.Cluster) bool) func(selection) (string, bool) {
	return func(s selection) (string, bool) { return s.clusterField + field, violated(s.cluster) }
}

func plainHTTP(c *clientcmdapi.Cluster) bool {
	u, err := url.Parse(c.Server)
	return err == nil && u.Scheme != "https" && u.Host != ""
}

func unusableServer(c *clientcmdapi.Cluster) bool {
	u, err := url.Parse(c.Server)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" {
		return true
	}
	return u.User != nil || u.RawQuery != "" || u.Fragment != "" || slices.Contains(strings.Split(u.Path, "/"), "..")
}

func withoutCredentials(u *clientcmdapi.AuthInfo) bool {
	certificate := len(u.ClientCertificateData) > 0 && len(u.ClientKeyData) > 0
	return u.Token == "" && u.Username == "" && !certificate
}

func invalid(field, format string, args ...any) *kubeconfigError {
	return &kubeconfigError{Reason: v1alpha1.ReasonKubeconfigInvalid, Field: field, Problem: fmt.Sprintf(format, args...)}
}

// firstLine shortens a parser's error, which may quote the whole input.
func firstLine(err error) error {
	line, _, _ := strings.Cut(err.Error(), "\n")
	const enough = 200
	if len(line) > enough {
		line = line[:enough] + "…"
	}
	return errors.New(line)
}
