package link

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// maxIdleConns bounds the idle connections to each worker.
const maxIdleConns = 25

// Target is what a Link shall lead to: a kubeconfig, or the reason why there is none. It's
// replaced as a whole.
type Target struct {
	fingerprint [sha256.Size]byte
	kubeconfig  []byte
	missing     *kubeconfigError // instead of a kubeconfig

	// ctx ends when the target is replaced: requests to it stop.
	ctx    context.Context
	cancel func()
}

// To is the Target of a kubeconfig.
func To(kubeconfig []byte) *Target {
	return newTarget(Target{fingerprint: sha256.Sum256(kubeconfig), kubeconfig: kubeconfig})
}

// Nowhere says why there is no kubeconfig, with a reason of the condition Ready.
func Nowhere(reason, problem string) *Target {
	return newTarget(Target{
		fingerprint: sha256.Sum256([]byte("none: " + reason + problem)),
		missing:     &kubeconfigError{Reason: reason, Problem: problem},
	})
}

func newTarget(t Target) *Target {
	t.ctx, t.cancel = context.WithCancel(context.Background())
	return &t
}

// transport makes the transport to the target, or says why there is none.
func (t *Target) transport(options Options) (*Transport, *kubeconfigError) {
	if t.missing != nil {
		return nil, t.missing
	}
	transport, err := NewTransport(t.kubeconfig, TransportOptions{
		DialTimeout: options.DialTimeout,
		// A list has no other limit: it may be long, but must begin.
		ResponseHeaderTimeout:  4 * options.RequestTimeout,
		MaxIdleConns:           maxIdleConns,
		MaxResponseHeaderBytes: maxHeaderBytes,
	})
	var refusal *kubeconfigError
	switch {
	case errors.As(err, &refusal):
		return nil, refusal
	case err != nil:
		return nil, &kubeconfigError{Reason: v1alpha1.ReasonKubeconfigInvalid, Problem: err.Error()}
	}
	return transport, nil
}

// equal reports whether both lead to the same cluster with the same credentials.
func (t *Target) equal(other *Target) bool {
	if t == nil || other == nil {
		return t == other
	}
	return t.fingerprint == other.fingerprint
}

// sameServer reports whether both lead to the same server by the same way, with whatever
// credentials.
func (t *Target) sameServer(other *Target) bool {
	if t == nil || other == nil {
		return t == other
	}
	own, known := t.cluster()
	others, alsoKnown := other.cluster()
	return known && alsoKnown && own.Server == others.Server && own.TLSServerName == others.TLSServerName &&
		own.ProxyURL == others.ProxyURL && bytes.Equal(own.CertificateAuthorityData, others.CertificateAuthorityData)
}

func (t *Target) cluster() (*clientcmdapi.Cluster, bool) {
	config, err := loadKubeconfig(t.kubeconfig)
	if err != nil {
		return nil, false
	}
	chosen, err := selectCurrent(config)
	return chosen.cluster, err == nil
}
