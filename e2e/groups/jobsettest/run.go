package jobsettest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/binaries"
	"github.com/jobferry/jobferry/e2e/rig/pki"
)

// startTimeout ends a start that hangs.
const startTimeout = 5 * time.Minute

// Prepare builds the program and fetches its module, for a Start without a network.
func Prepare(ctx context.Context) error {
	_, built := binaries.Tool(ctx, binaries.JobSet, binaries.Lines(os.Stderr))
	_, fetched := moduleDir(ctx)
	return errors.Join(built, fetched)
}

// Start installs JobSet on a hub, starts its manager, and returns when its webhooks answer. It ends
// with the hub. If the program is not in the cache, it's built first, which takes minutes.
func Start(ctx context.Context, hub *rig.Cluster) (*rig.Component, error) {
	program, err := binaries.Tool(ctx, binaries.JobSet, binaries.Lines(os.Stderr))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	s, err := newSetup(hub)
	if err != nil {
		return nil, err
	}
	if err := s.install(ctx); err != nil {
		return nil, fmt.Errorf("install JobSet: %w", err)
	}
	if err := s.makeFiles(ctx); err != nil {
		return nil, fmt.Errorf("files of JobSet's manager: %w", err)
	}
	controller := hub.AddProgram(binaries.JobSet, program, "--kubeconfig="+s.file("kubeconfig"), "--config="+s.file("config.yaml"), "--zap-log-level=2")
	if err := controller.Start(); err != nil {
		return nil, err
	}
	return controller, hub.Serves(ctx, fmt.Sprintf("http://%s/readyz", s.healthAddress()))
}

// loopback is where the manager serves.
var loopback = net.IPv4(127, 0, 0, 1)

// setup is what one JobSet is started with.
type setup struct {
	hub                     *rig.Cluster
	webhookPort, healthPort int
	folder                  string
	authority               *pki.Authority
}

func newSetup(hub *rig.Cluster) (*setup, error) {
	s := &setup{hub: hub}
	var err error
	for _, port := range []*int{&s.webhookPort, &s.healthPort} {
		if *port, err = hub.ReservePort(); err != nil {
			return nil, err
		}
	}
	if s.folder, err = hub.AddFolder("jobset"); err != nil {
		return nil, err
	}
	s.authority, err = pki.NewAuthority("jobset-ca")
	return s, err
}

func (s *setup) file(name string) string { return filepath.Join(s.folder, name) }

func (s *setup) healthAddress() string { return fmt.Sprintf("%s:%d", loopback, s.healthPort) }

// makeFiles writes what a kubelet would mount, and the configuration.
func (s *setup) makeFiles(ctx context.Context) error {
	pair, err := s.authority.Server([]net.IP{loopback}, "jobset")
	if err != nil {
		return err
	}
	kubeconfig, err := s.hub.ServiceAccountKubeconfig(ctx, Namespace, account)
	if err != nil {
		return err
	}
	config, err := s.configuration()
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{
		"tls.crt": pair.Certificate, "tls.key": pair.Key, "kubeconfig": kubeconfig, "config.yaml": config,
	} {
		if err := os.WriteFile(s.file(name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// configuration is JobSet's configuration file: the defaults of its manifests, but for addresses
// and the certificate.
func (s *setup) configuration() ([]byte, error) {
	return yaml.Marshal(map[string]any{
		"apiVersion":             "config.jobset.x-k8s.io/v1alpha1",
		"kind":                   "Configuration",
		"health":                 map[string]any{"healthProbeBindAddress": s.healthAddress()},
		"metrics":                map[string]any{"bindAddress": "0"},
		"webhook":                map[string]any{"host": loopback.String(), "port": s.webhookPort, "certDir": s.folder},
		"internalCertManagement": map[string]any{"enable": false},
		"leaderElection":         map[string]any{"leaderElect": false},
	})
}
