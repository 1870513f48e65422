package process

import (
	"crypto/tls"
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/client-go/util/cert"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"

	"github.com/jobferry/jobferry/pkg/util/serve"
)

// off is the address of what isn't served; so is an empty one.
const off = "0"

func isOff(address string) bool { return address == off || address == "" }

// checked is a manager whose health checks are served by package serve.
type checked struct {
	ctrl.Manager
	healthz, readyz healthz.Handler
}

// AddHealthzCheck implements ctrl.Manager.
func (m *checked) AddHealthzCheck(name string, check healthz.Checker) error {
	m.healthz.Checks[name] = check
	return nil
}

// AddReadyzCheck implements ctrl.Manager.
func (m *checked) AddReadyzCheck(name string, check healthz.Checker) error {
	m.readyz.Checks[name] = check
	return nil
}

// serve has a manager serve its health checks and metrics. Checks are added before it starts.
func (f *Flags) serve(mgr ctrl.Manager) (ctrl.Manager, error) {
	m := &checked{
		Manager: mgr,
		healthz: healthz.Handler{Checks: map[string]healthz.Checker{"ping": healthz.Ping}},
		readyz:  healthz.Handler{Checks: map[string]healthz.Checker{"ping": healthz.Ping}},
	}
	health := http.NewServeMux()
	for path, handler := range map[string]http.Handler{"/healthz": &m.healthz, "/readyz": &m.readyz} {
		health.Handle(path, http.StripPrefix(path, handler))
		health.Handle(path+"/", http.StripPrefix(path, handler))
	}
	if err := add(mgr, "health probes", f.healthAddress, health, nil); err != nil {
		return nil, err
	}
	if isOff(f.metricsAddress) {
		return m, nil
	}
	handler, config, err := f.metrics(mgr)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	shown := http.NewServeMux()
	shown.Handle("/metrics", handler)
	return m, add(mgr, "metrics", f.metricsAddress, shown, config)
}

func add(mgr ctrl.Manager, name, address string, handler http.Handler, config *tls.Config) error {
	if isOff(address) {
		return nil
	}
	return Serve(mgr, name, address, handler, config)
}

// Serve has a manager serve a port that anybody reaches, as package serve does.
func Serve(mgr ctrl.Manager, name, address string, handler http.Handler, config *tls.Config) error {
	server, listener, err := serve.New(name, address, handler, config)
	if err != nil {
		return err
	}
	return mgr.Add(&manager.Server{Name: name, Server: server, Listener: listener, ShutdownTimeout: ptr.To(serve.ShutdownTimeout)})
}

// metrics serves them: with --metrics-secure to those whom the cluster lets read them, by TLS with
// a certificate that nobody has signed, as Kubernetes' own components do without one.
func (f *Flags) metrics(mgr ctrl.Manager) (http.Handler, *tls.Config, error) {
	handler := promhttp.HandlerFor(metrics.Registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError})
	if !f.metricsSecure {
		return handler, nil, nil
	}
	filter, err := filters.WithAuthenticationAndAuthorization(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, nil, err
	}
	secured, err := filter(ctrl.Log.WithName("metrics"), handler)
	if err != nil {
		return nil, nil, err
	}
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	if err != nil {
		return nil, nil, err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, nil, err
	}
	return secured, &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}, nil
}
