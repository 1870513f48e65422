package subresources

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/jobferry/jobferry/pkg/manager/subresources/authoritytest"
	"github.com/jobferry/jobferry/pkg/manager/subresources/kubelet"
)

// Whoever has no certificate of the front proxy is a stranger, also without a user in the headers.
func TestTheFrontProxyIsKnown(t *testing.T) {
	of := authoritytest.New(t)
	front, err := newFrontProxy(fake.NewClientset(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: kubelet.AuthenticationConfigMap},
		Data: map[string]string{
			frontProxyCA:    of.PEM(),
			usernameHeaders: `["X-Remote-User"]`, groupHeaders: `["X-Remote-Group"]`, uidHeaders: `[]`,
			extraHeaderPrefixes: `["X-Remote-Extra-"]`, allowedNames: `["front-proxy"]`,
		},
	}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { front.run(ctx) })
	defer running.Wait()
	defer cancel()
	err = wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		_, read := front.authority.VerifyOptions()
		return read && len(front.headers.AllowedClientNames()) > 0, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		state *tls.ConnectionState
		want  bool
	}{
		"the front proxy":       {&tls.ConnectionState{PeerCertificates: []*x509.Certificate{of.Client("front-proxy").Leaf}}, true},
		"another name":          {&tls.ConnectionState{PeerCertificates: []*x509.Certificate{of.Client("other").Leaf}}, false},
		"another authority":     {&tls.ConnectionState{PeerCertificates: []*x509.Certificate{authoritytest.New(t).Client("front-proxy").Leaf}}, false},
		"without a certificate": {&tls.ConnectionState{}, false},
		"without TLS":           {nil, false},
	} {
		if got := front.isProxy(&http.Request{TLS: row.state}); got != row.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
