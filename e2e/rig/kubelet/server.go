package kubelet

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
)

// Times of the streaming protocols, as long as a kubelet's.
const (
	idleTimeout           = 4 * time.Hour
	streamCreationTimeout = 30 * time.Second
)

// Server answers for all nodes of a cluster.
type Server struct {
	client kubernetes.Interface
	web    *http.Server
}

// Serve starts a server, which runs until the context ends. A client of the cluster tells it of
// Pods.
func Serve(ctx context.Context, listener net.Listener, certificate tls.Certificate, client kubernetes.Interface) *Server {
	s := &Server{client: client}
	mux := http.NewServeMux()
	mux.HandleFunc("/containerLogs/{namespace}/{pod}/{container}", s.logs)
	mux.HandleFunc("/exec/{namespace}/{pod}/{container}", s.exec)
	mux.HandleFunc("/attach/{namespace}/{pod}/{container}", s.attach)
	mux.HandleFunc("/portForward/{namespace}/{pod}", s.portForward)
	s.web = &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: streamCreationTimeout,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		TLSConfig:         &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}},
	}
	go func() { _ = s.web.ServeTLS(listener, "", "") }() // ends with Close
	context.AfterFunc(ctx, func() { _ = s.web.Close() })
	return s
}

func (s *Server) exec(w http.ResponseWriter, r *http.Request) {
	if pod, options := s.streams(w, r); pod != nil {
		remotecommand.ServeExec(w, r, executor{pod}, pod.Name, string(pod.UID), r.PathValue("container"),
			r.URL.Query()[remotecommandCommand], options, idleTimeout, streamCreationTimeout, remotecommand.SupportedStreamingProtocols)
	}
}

func (s *Server) attach(w http.ResponseWriter, r *http.Request) {
	if pod, options := s.streams(w, r); pod != nil {
		remotecommand.ServeAttach(w, r, attacher{pod}, pod.Name, string(pod.UID), r.PathValue("container"),
			options, idleTimeout, streamCreationTimeout, remotecommand.SupportedStreamingProtocols)
	}
}

func (s *Server) portForward(w http.ResponseWriter, r *http.Request) {
	options, err := portforward.NewV4Options(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	pod, err := s.pod(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	portforward.ServePortForward(w, r, forwarder{pod}, pod.Name, string(pod.UID), options,
		idleTimeout, streamCreationTimeout, portforward.SupportedProtocols)
}

// streams returns the Pod whose container runs, and the streams that are asked for; or it answers
// with an error, and returns no Pod.
func (s *Server) streams(w http.ResponseWriter, r *http.Request) (*corev1.Pod, *remotecommand.Options) {
	options, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return nil, nil
	}
	pod, err := s.pod(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return nil, nil
	}
	if l, ok := lifeOf(pod, r.PathValue("container")); !ok || l.ended {
		http.Error(w, fmt.Sprintf("container not running: %s in Pod %s", r.PathValue("container"), pod.Name), http.StatusBadRequest)
		return nil, nil
	}
	return pod, options
}
