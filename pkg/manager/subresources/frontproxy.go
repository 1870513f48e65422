package subresources

import (
	"context"
	"net/http"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes"

	"github.com/jobferry/jobferry/pkg/manager/subresources/kubelet"
)

// The keys of the ConfigMap by which aggregated API servers authenticate their API server.
const (
	frontProxyCA        = "requestheader-client-ca-file"
	usernameHeaders     = "requestheader-username-headers"
	uidHeaders          = "requestheader-uid-headers"
	groupHeaders        = "requestheader-group-headers"
	extraHeaderPrefixes = "requestheader-extra-headers-prefix"
	allowedNames        = "requestheader-allowed-names"
)

// userAuthenticator finds the user of a request.
type userAuthenticator interface {
	// authenticate returns nil if the request has no authenticated user.
	authenticate(*http.Request) user.Info
}

// frontProxy trusts the user headers of requests with the front proxy's client certificate. It
// watches the front proxy's authority on the hub: a rotated one has effect at once, and until there
// is one, all requests are refused.
type frontProxy struct {
	authenticator authenticator.Request
	// certificate authenticates requests by the client certificate alone.
	certificate authenticator.Request
	authority   *dynamiccertificates.ConfigMapCAController
	headers     *headerrequest.RequestHeaderAuthRequestController
}

func newFrontProxy(hub kubernetes.Interface) (*frontProxy, error) {
	authority, err := dynamiccertificates.NewDynamicCAFromConfigMapController("front-proxy",
		metav1.NamespaceSystem, kubelet.AuthenticationConfigMap, frontProxyCA, hub)
	if err != nil {
		return nil, err
	}
	headers := headerrequest.NewRequestHeaderAuthRequestController(kubelet.AuthenticationConfigMap, metav1.NamespaceSystem, hub,
		usernameHeaders, uidHeaders, groupHeaders, extraHeaderPrefixes, allowedNames)
	list := func(values func() []string) headerrequest.StringSliceProvider {
		return headerrequest.StringSliceProviderFunc(values)
	}
	return &frontProxy{
		authority:   authority,
		headers:     headers,
		certificate: x509.NewDynamicCAVerifier(authority.VerifyOptions, authenticator.RequestFunc(anyProxy), list(headers.AllowedClientNames)),
		authenticator: headerrequest.NewDynamicVerifyOptionsSecure(authority.VerifyOptions,
			list(headers.AllowedClientNames), list(headers.UsernameHeaders), list(headers.UIDHeaders),
			list(headers.GroupHeaders), list(headers.ExtraHeaderPrefixes)),
	}, nil
}

// anyProxy is for requests whose certificate is verified.
func anyProxy(*http.Request) (*authenticator.Response, bool, error) {
	return &authenticator.Response{}, true, nil
}

// isProxy reports whether a request has the front proxy's client certificate.
func (f *frontProxy) isProxy(r *http.Request) bool {
	_, ok, err := f.certificate.AuthenticateRequest(r)
	return err == nil && ok
}

// run watches the ConfigMap until the context ends.
func (f *frontProxy) run(ctx context.Context) {
	var both sync.WaitGroup
	both.Go(func() { f.authority.Run(ctx, 1) })
	both.Go(func() { f.headers.Run(ctx, 1) })
	both.Wait()
}

func (f *frontProxy) authenticate(r *http.Request) user.Info {
	answer, ok, err := f.authenticator.AuthenticateRequest(r)
	if err != nil || !ok {
		return nil // the reason isn't for an unknown client
	}
	return answer.User
}
