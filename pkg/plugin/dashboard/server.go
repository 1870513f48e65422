package dashboard

import (
	"context"
	"embed"
	"errors"
	"html/template"
	"io"
	"io/fs"
	"net"
	"net/http"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/plugin/access"
	"github.com/jobferry/jobferry/pkg/plugin/dashboard/hub"
	"github.com/jobferry/jobferry/pkg/plugin/dashboard/view"
	"github.com/jobferry/jobferry/pkg/util/serve"
)

// Hub is what the pages are made from; hub.Hub is one.
type Hub interface {
	Namespace() string
	Changed() <-chan struct{}
	Health() hub.Health
	JobsHealth() hub.Health
	EventsHealth() hub.Health
	WorkersHealth() hub.Health
	Jobs() []*batchv1.Job
	Job(types.NamespacedName) *batchv1.Job
	Workers() []*v1alpha1.WorkerCluster
	Around() view.Around
	Details(context.Context, *batchv1.Job) view.JobInput
	HasQueues() bool
	Queues(context.Context) view.Queues
	Log(context.Context, types.NamespacedName, access.PodChoice, *corev1.PodLogOptions) (io.ReadCloser, error)
}

// Options are what a Server is made for.
type Options struct {
	// HubName is how the user calls the hub: the kubeconfig's context.
	HubName string
	// Flags lead kubectl to the hub, in the commands that pages show.
	Flags []string
	Clock clock.WithTicker
}

// Server serves the pages.
type Server struct {
	hub     Hub
	options Options
	token   string
	// base is the path that all pages are below: see guard.
	base      string
	templates *template.Template
}

// New makes a Server.
func New(h Hub, options Options) *Server {
	base := "/" + newSecret()
	return &Server{hub: h, options: options, token: newSecret(), base: base, templates: template.Must(parse(base))}
}

//go:embed assets
var assets embed.FS

// Handler serves the pages to those who have the token, at an address such as 127.0.0.1:8080.
func (s *Server) Handler(host string) http.Handler {
	static, _ := fs.Sub(assets, "assets") // the folder is embedded
	mux := http.NewServeMux()
	mux.Handle("GET /assets/", http.StripPrefix("/assets/", http.FileServerFS(static)))
	mux.HandleFunc("GET /stream", s.stream)
	mux.HandleFunc("GET /jobs/{namespace}/{name}/indexes", s.indexes)
	mux.HandleFunc("GET /jobs/{namespace}/{name}/log", s.log)
	mux.HandleFunc("GET /", s.document)
	return &guard{host: host, token: s.token, base: s.base, next: http.StripPrefix(s.base, mux)}
}

// URL is the address for the user's browser.
func (s *Server) URL(listener net.Listener) string {
	return "http://" + listener.Addr().String() + s.base + "/?" + tokenParameter + "=" + s.token
}

// Serve serves until the context ends. Whoever is on this machine, and whatever page is in the
// user's browser, may send requests: few of their connections are held.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	server := serve.Bounded(s.Handler(listener.Addr().String()), nil)
	server.BaseContext, server.ConnContext = func(net.Listener) context.Context { return ctx }, serve.WithConn
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(serve.Limit(listener, false)); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
