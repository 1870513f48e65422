package subresources

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/util/wake"
)

// labelAddress of the manager's Lease is where the other replicas reach the leader's server.
const labelAddress = "jobferry.dev/leader-address"

// LeaseLabels are those of the manager's Lease while this replica leads.
func LeaseLabels(address netip.AddrPort) map[string]string {
	// A label's value may have no colon, and begins and ends with a letter or a digit.
	ip := strings.ReplaceAll(address.Addr().WithZone("").StringExpanded(), ":", "-")
	return map[string]string{labelAddress: fmt.Sprintf("%s_%d", ip, address.Port())}
}

// leaderAddress reads what LeaseLabels wrote.
func leaderAddress(lease *coordinationv1.Lease) (string, error) {
	ip, port, _ := strings.Cut(lease.Labels[labelAddress], "_")
	address, err := netip.ParseAddrPort(net.JoinHostPort(strings.ReplaceAll(ip, "-", ":"), port))
	if err != nil {
		return "", unavailable("the manager's leader doesn't say where it can be reached, as one of an older release doesn't: try again later")
	}
	return address.String(), nil
}

// Reachable is where other replicas reach a server that listens on an address. If it listens on all
// interfaces, that's the one by which this process reaches the hub; no packet is sent to find out.
func Reachable(ctx context.Context, bind, hub string) (netip.AddrPort, error) {
	host, port, err := net.SplitHostPort(bind)
	if err != nil {
		return netip.AddrPort{}, err
	}
	if ip, err := netip.ParseAddr(host); err == nil && !ip.IsUnspecified() {
		return netip.ParseAddrPort(bind)
	}
	server, err := url.Parse(hub)
	if err != nil {
		return netip.AddrPort{}, err
	}
	to := server.Host
	if server.Port() == "" {
		to = net.JoinHostPort(server.Hostname(), "443")
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "udp", to)
	if err != nil {
		return netip.AddrPort{}, err
	}
	defer conn.Close()
	local, err := netip.ParseAddrPort(conn.LocalAddr().String())
	if err != nil {
		return netip.AddrPort{}, err
	}
	return netip.ParseAddrPort(net.JoinHostPort(local.Addr().Unmap().String(), port))
}

// leader explains in the replica that leads, whichever was asked.
//
// The replicas know each other by the serving certificate, whose key only they have: the one that
// asks presents it, too. What they trust each other with is no more than a request of a user who
// was authorized.
type leader struct {
	Explainer
	// leads is closed when this replica leads.
	leads       <-chan struct{}
	lease       client.ObjectKey
	hub         client.Reader
	certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	dialTimeout time.Duration
}

func newLeader(hub client.Reader, elected <-chan struct{}, options Options) *leader {
	if options.Explainer == nil {
		elected = nil
	}
	return &leader{
		Explainer: options.Explainer, leads: elected, hub: hub,
		certificate: options.Certificate, dialTimeout: options.DialTimeout,
		lease: client.ObjectKey{Namespace: options.Namespace, Name: options.Lease},
	}
}

// Explain implements Explainer.
func (l *leader) Explain(ctx context.Context, job types.NamespacedName) (*v1alpha1.PlacementExplanation, error) {
	if wake.IsClosed(l.leads) {
		return l.Explainer.Explain(ctx, job)
	}
	var lease coordinationv1.Lease
	if err := l.hub.Get(ctx, l.lease, &lease); err != nil && !apierrors.IsNotFound(err) {
		return nil, fromHub(fmt.Sprintf("Lease %q", l.lease), err)
	}
	if ptr.Deref(lease.Spec.HolderIdentity, "") == "" {
		return nil, unavailable("no replica of the manager leads now: try again")
	}
	address, err := leaderAddress(&lease)
	if err != nil {
		return nil, err
	}
	explanation, err := l.ask(ctx, address, job)
	var said apierrors.APIStatus
	switch {
	case err == nil || errors.As(err, &said):
		return explanation, err
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, apierrors.NewTimeoutError("the replica of the manager that leads doesn't answer in time: try again later", 0)
	default:
		return nil, unavailable("the replica of the manager that leads doesn't answer: try again: %s", clean(err.Error()))
	}
}

// peerPath is what replicas ask each other for.
const peerPath = "/leader/namespaces/{namespace}/jobs/{name}/why"

// maxPeerBytes bounds the answer of the leader: it's far larger than any.
const maxPeerBytes = 8 << 20

func (l *leader) ask(ctx context.Context, address string, job types.NamespacedName) (*v1alpha1.PlacementExplanation, error) {
	trust, err := l.trust()
	if err != nil {
		return nil, err
	}
	path := strings.NewReplacer("{namespace}", url.PathEscape(job.Namespace), "{name}", url.PathEscape(job.Name)).Replace(peerPath)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+path, nil)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{
		TLSClientConfig: trust, DisableKeepAlives: true,
		DialContext: (&net.Dialer{Timeout: l.dialTimeout}).DialContext, TLSHandshakeTimeout: l.dialTimeout,
	}
	web := &http.Client{Transport: transport, CheckRedirect: noRedirect}
	response, err := web.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(io.LimitReader(response.Body, maxPeerBytes))
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		var status metav1.Status
		if err := json.Unmarshal(content, &status); err != nil || status.Code == 0 || status.Code == http.StatusUnauthorized {
			return nil, fmt.Errorf("it answers with %d", response.StatusCode)
		}
		return nil, &apierrors.StatusError{ErrStatus: status}
	}
	explanation := &v1alpha1.PlacementExplanation{}
	return explanation, json.Unmarshal(content, explanation)
}

// own is the certificate of all replicas.
func (l *leader) own() (*tls.Certificate, error) { return l.certificate(&tls.ClientHelloInfo{}) }

// trust trusts the leader by exactly this certificate, whoever issued it.
func (l *leader) trust() (*tls.Config, error) {
	own, err := l.own()
	if err != nil {
		return nil, err
	}
	if len(own.Leaf.DNSNames) == 0 {
		return nil, errors.New("the serving certificate has no DNS name")
	}
	peers := x509.NewCertPool()
	peers.AddCert(own.Leaf)
	return &tls.Config{
		MinVersion: tls.VersionTLS12, RootCAs: peers, ServerName: own.Leaf.DNSNames[0],
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return own, nil },
	}, nil
}

// isPeer reports whether a request is from another replica: TLS has proved that it has the key.
func (l *leader) isPeer(r *http.Request) bool {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return false
	}
	own, err := l.own()
	return err == nil && own.Leaf.Equal(r.TLS.PeerCertificates[0])
}

// servePeer answers another replica, if this one leads.
func (l *leader) servePeer(w http.ResponseWriter, r *http.Request) {
	if !l.isPeer(r) {
		writeError(w, statusError(http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "this is for the other replicas of the manager only"))
		return
	}
	if !wake.IsClosed(l.leads) {
		writeError(w, unavailable("this replica of the manager doesn't lead any more: try again"))
		return
	}
	explanation, err := l.Explainer.Explain(r.Context(), types.NamespacedName{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")})
	if err != nil {
		writeError(w, err)
		return
	}
	writeJSON(w, http.StatusOK, explanation)
}
