package clusters

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// maxIdleConns bounds the idle connections to each worker.
const maxIdleConns = 25

// target is what a connection shall lead to: a kubeconfig, or the reason why there is none. It's
// replaced as a whole.
type target struct {
	fingerprint [sha256.Size]byte
	kubeconfig  []byte
	missing     *KubeconfigError // instead of a kubeconfig

	// ctx ends when the target is replaced: requests to it stop.
	ctx    context.Context
	cancel func()
}

// known is what the hub knows of a worker from before this process.
type known struct {
	clusterUID types.UID
	// since is when the worker was first found not to be Ready, and clock the loss clock; zero if
	// it was Ready.
	since, clock time.Time
}

func targetOf(kubeconfig []byte) *target {
	return newTarget(target{fingerprint: sha256.Sum256(kubeconfig), kubeconfig: kubeconfig})
}

func noTarget(reason, problem string) *target {
	return newTarget(target{
		fingerprint: sha256.Sum256([]byte("none: " + reason + problem)),
		missing:     &KubeconfigError{Reason: reason, Problem: problem},
	})
}

func newTarget(t target) *target {
	t.ctx, t.cancel = context.WithCancel(context.Background())
	return &t
}

// transport makes the transport to the target, or says why there is none.
func (t *target) transport(options Options) (*Transport, *KubeconfigError) {
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
	var refusal *KubeconfigError
	switch {
	case errors.As(err, &refusal):
		return nil, refusal
	case err != nil:
		return nil, &KubeconfigError{Reason: v1alpha1.ReasonKubeconfigInvalid, Problem: err.Error()}
	}
	return transport, nil
}

// equal reports whether both lead to the same cluster with the same credentials.
func (t *target) equal(other *target) bool {
	if t == nil || other == nil {
		return t == other
	}
	return t.fingerprint == other.fingerprint
}

// sameServer reports whether both lead to the same server by the same way, with whatever
// credentials.
func (t *target) sameServer(other *target) bool {
	if t == nil || other == nil {
		return t == other
	}
	own, known := t.cluster()
	others, alsoKnown := other.cluster()
	return known && alsoKnown && own.Server == others.Server && own.TLSServerName == others.TLSServerName &&
		own.ProxyURL == others.ProxyURL && bytes.Equal(own.CertificateAuthorityData, others.CertificateAuthorityData)
}

func (t *target) cluster() (*clientcmdapi.Cluster, bool) {
	config, err := loadKubeconfig(t.kubeconfig)
	if err != nil {
		return nil, false
	}
	chosen, err := selectCurrent(config)
	return chosen.cluster, err == nil
}
