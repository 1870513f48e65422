package clusters

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
)

// identity is what a cluster says that it is.
type identity struct {
	uid     types.UID
	version string // empty if it wasn't asked for
}

// prober asks a worker who it is. Reading the kube-system namespace is a probe of the whole way
// that other requests take: network, TLS, authentication, authorization and etcd; /readyz would
// show less. And it notices when another cluster answers at the same address.
type prober struct {
	api     *rest.RESTClient
	timeout time.Duration
	took    func(time.Duration)
}

func newProber(w *wire, options Options, took func(time.Duration)) (*prober, error) {
	api, err := newREST(corev1.SchemeGroupVersion, httpClient(w, laneProbes))
	if err != nil {
		return nil, err
	}
	return &prober{api: api, timeout: options.ProbeTimeout, took: took}, nil
}

// ask gets the identity, or fails within the timeout.
func (p *prober) ask(ctx context.Context, withVersion bool) (identity, error) {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	start := time.Now()
	defer func() { p.took(time.Since(start)) }()

	var system corev1.Namespace
	err := p.api.Get().Resource("namespaces").Name(metav1.NamespaceSystem).MaxRetries(0).Do(ctx).Into(&system)
	if err != nil || !withVersion {
		return identity{uid: system.UID}, err
	}
	raw, err := p.api.Get().AbsPath("/version").MaxRetries(0).Do(ctx).Raw()
	if err != nil {
		return identity{}, err
	}
	var info version.Info
	if err := json.Unmarshal(raw, &info); err != nil {
		return identity{}, fmt.Errorf("read the API server's version: %w", err)
	}
	return identity{uid: system.UID, version: info.GitVersion}, nil
}
