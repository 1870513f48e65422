// Package boundtoken reads what a ServiceAccount's bound token says of itself, and replaces the
// token of a kubeconfig. It is pure. It verifies no signature: only the cluster that has issued a
// token can, so what a token says is used to decide what to ask of that cluster, and nothing else.
package boundtoken

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// maxLength bounds a token: one of a ServiceAccount has about 1 KiB.
const maxLength = 16 << 10

// Token is a bound token of a ServiceAccount.
type Token struct {
	// Account is the ServiceAccount, and AccountUID its UID: with the account, all its tokens end.
	Account    types.NamespacedName
	AccountUID types.UID
	// Issued and Expires are times of the cluster that has issued the token.
	Issued, Expires time.Time
}

// Lifetime is how long the token is valid in all.
func (t Token) Lifetime() time.Duration { return t.Expires.Sub(t.Issued) }

// claims are the parts of a token that are read.
type claims struct {
	Issued     int64 `json:"iat"`
	Expires    int64 `json:"exp"`
	Kubernetes struct {
		Namespace string `json:"namespace"`
		Account   ref    `json:"serviceaccount"`
	} `json:"kubernetes.io"`
}

type ref struct {
	Name string    `json:"name"`
	UID  types.UID `json:"uid"`
}

// Parse returns false for whatever isn't a ServiceAccount's token that expires.
func Parse(token string) (Token, bool) {
	if len(token) > maxLength {
		return Token{}, false
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return Token{}, false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return Token{}, false
	}
	var c claims
	if err := json.Unmarshal(payload, &c); err != nil {
		return Token{}, false
	}
	t := Token{
		Account:    types.NamespacedName{Namespace: c.Kubernetes.Namespace, Name: c.Kubernetes.Account.Name},
		AccountUID: c.Kubernetes.Account.UID,
		Issued:     time.Unix(c.Issued, 0), Expires: time.Unix(c.Expires, 0),
	}
	return t, t.Account.Namespace != "" && t.Account.Name != "" && c.Issued > 0 && c.Expires > c.Issued
}

// MaxKubeconfigBytes bounds what is parsed: a kubeconfig for one cluster with certificates in it
// has a few KiB.
const MaxKubeconfigBytes = 256 << 10

// LoadKubeconfig reads a kubeconfig, but for one with aliases: of a few, gigabytes can become.
func LoadKubeconfig(raw []byte) (*clientcmdapi.Config, error) {
	switch {
	case len(raw) > MaxKubeconfigBytes:
		return nil, fmt.Errorf("%d bytes are more than the %d allowed: keep one context in it", len(raw), MaxKubeconfigBytes)
	case mayHaveAlias(raw):
		return nil, errors.New("it has YAML aliases: write out what they stand for")
	}
	return clientcmd.Load(raw)
}

// mayHaveAlias looks for an asterisk where a value of YAML may begin, in any encoding.
func mayHaveAlias(raw []byte) bool {
	for i, b := range raw {
		if b == '*' && (i == 0 || raw[i-1] <= ' ' || raw[i-1] > '~' || strings.IndexByte(",[{:", raw[i-1]) >= 0) {
			return true
		}
	}
	return false
}

// load reads a kubeconfig, and returns its current context.
func load(kubeconfig []byte) (*clientcmdapi.Config, *clientcmdapi.Context, error) {
	config, err := LoadKubeconfig(kubeconfig)
	if err != nil {
		return nil, nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	current := config.Contexts[config.CurrentContext]
	if current == nil {
		return nil, nil, fmt.Errorf("the kubeconfig has no context %q", config.CurrentContext)
	}
	return config, current, nil
}

// Of returns the token in a kubeconfig's current context; empty: it has none.
func Of(kubeconfig []byte) string {
	config, current, err := load(kubeconfig)
	if err != nil || config.AuthInfos[current.AuthInfo] == nil {
		return ""
	}
	return config.AuthInfos[current.AuthInfo].Token
}

// Replace puts a token into a kubeconfig, as the only credential of its current context.
func Replace(kubeconfig []byte, token string) ([]byte, error) {
	config, current, err := load(kubeconfig)
	if err != nil {
		return nil, err
	}
	config.AuthInfos[current.AuthInfo] = &clientcmdapi.AuthInfo{Token: token}
	return clientcmd.Write(*config)
}
