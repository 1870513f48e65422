package kubelet

import (
	"context"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes"
)

// AuthenticationConfigMap has, in namespace kube-system, the authorities that API servers trust.
const AuthenticationConfigMap = "extension-apiserver-authentication"

const clientCA = "client-ca-file" // its key of the one for clients

// ClientAuthority authenticates clients by certificates of the hub's client CA. It watches it: a
// rotated one has effect at once, and until there is one, all requests are refused.
type ClientAuthority struct {
	authority *dynamiccertificates.ConfigMapCAController
	requests  authenticator.Request
}

// NewClientAuthority makes one for a hub. It knows nobody before Run.
func NewClientAuthority(hub kubernetes.Interface) (*ClientAuthority, error) {
	authority, err := dynamiccertificates.NewDynamicCAFromConfigMapController("client-ca",
		metav1.NamespaceSystem, AuthenticationConfigMap, clientCA, hub)
	if err != nil {
		return nil, fmt.Errorf("client CA: %w", err)
	}
	return &ClientAuthority{
		authority: authority,
		requests:  x509.NewDynamic(authority.VerifyOptions, x509.CommonNameUserConversion),
	}, nil
}

// Run watches the ConfigMap until the context ends.
func (a *ClientAuthority) Run(ctx context.Context) { a.authority.Run(ctx, 1) }

// AuthenticateRequest implements authenticator.Request.
func (a *ClientAuthority) AuthenticateRequest(r *http.Request) (*authenticator.Response, bool, error) {
	return a.requests.AuthenticateRequest(r) //nolint:wrapcheck // nobody reads it
}
