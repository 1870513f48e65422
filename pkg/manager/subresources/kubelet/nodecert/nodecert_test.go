package nodecert

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"slices"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/fake"
)

func serves(t *testing.T, c *Certificate) *x509.Certificate {
	t.Helper()
	pair, err := c.GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	return leaf
}

func TestSelfSigned(t *testing.T) {
	for _, address := range []string{"10.1.2.3", "fd00::1"} {
		c, err := New(address, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := serves(t, c).VerifyHostname(address); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := c.Start(ctx); err != nil || c.NeedLeaderElection() {
			t.Error(err)
		}
	}
	if _, err := New("localhost", nil); err == nil {
		t.Error("a name is taken for an address")
	}
}

// Until somebody approves the request, the self-signed certificate is served, and then the one that
// the hub issues.
func TestTheHubsSigner(t *testing.T) {
	hub := fake.NewClientset()
	c, err := New("10.1.2.3", hub)
	if err != nil {
		t.Fatal(err)
	}
	own := serves(t, c)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Start(ctx) }()
	requests := hub.CertificatesV1().CertificateSigningRequests()
	var request *certificatesv1.CertificateSigningRequest
	until(t, func() bool {
		list, err := requests.List(ctx, metav1.ListOptions{})
		if err != nil || len(list.Items) == 0 {
			return false
		}
		request = &list.Items[0]
		return true
	})
	if request.Spec.SignerName != "kubernetes.io/kubelet-serving" || !slices.Contains(request.Spec.Usages, certificatesv1.UsageServerAuth) ||
		slices.Contains(request.Spec.Usages, certificatesv1.UsageClientAuth) {
		t.Errorf("%+v", request.Spec)
	}
	if got := serves(t, c); !got.Equal(own) {
		t.Error("the self-signed certificate isn't served any more")
	}
	issue(t, request)
	if _, err := requests.UpdateStatus(ctx, request, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, func() bool { return !serves(t, c).Equal(own) })
	got := serves(t, c)
	if got.Subject.CommonName != "system:node:jobferry-manager" || !slices.Equal(got.Subject.Organization, []string{"system:nodes"}) ||
		got.VerifyHostname("10.1.2.3") != nil || got.Issuer.CommonName != "hub" {
		t.Errorf("%v of %v", got.Subject, got.Issuer)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func until(t *testing.T, is func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) { return is(), nil })
	if err != nil {
		t.Fatal(err)
	}
}

// issue approves a request, and does what the hub's signer does.
func issue(t *testing.T, request *certificatesv1.CertificateSigningRequest) {
	t.Helper()
	block, _ := pem.Decode(request.Spec.Request)
	asked, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	signed, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: asked.Subject, IPAddresses: asked.IPAddresses, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
	}, &x509.Certificate{Subject: pkix.Name{CommonName: "hub"}}, asked.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	request.Status.Certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed})
	request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Status: "True"}}
}
