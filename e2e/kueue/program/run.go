package program

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/binaries"
)

// Options choose how Kueue runs.
type Options struct {
	// PodsReadyTimeout turns waitForPodsReady on, so that Workloads have the condition PodsReady.
	PodsReadyTimeout time.Duration
	// Program is Kueue's manager; empty: the one of the rig. See WithRateInWorkers.
	Program string
	// User is who Kueue is in the cluster; empty: the administrator. It may do everything.
	User string
	// FeatureGates of Kueue.
	FeatureGates map[string]bool
	// Frameworks are the kinds beside batch/v1 Jobs that Kueue queues, as its configuration calls
	// them. Their CRDs must be there already.
	Frameworks []string
}

// startTimeout bounds the start of Kueue: it waits for its certificates a second or more.
const startTimeout = 5 * time.Minute

// Start installs Kueue on a hub, starts its manager, and returns when its webhooks answer. It ends
// with the hub. If the program is not in the cache, it's built first, which takes minutes.
func Start(ctx context.Context, hub *rig.Cluster, options Options) (_ *rig.Component, err error) {
	program := options.Program
	if program == "" {
		if program, err = binaries.Tool(ctx, binaries.Kueue, binaries.Lines(os.Stderr)); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	s, err := newSetup(hub, options)
	if err != nil {
		return nil, err
	}
	if err := install(ctx, hub, s.webhookPort); err != nil {
		return nil, fmt.Errorf("install Kueue: %w", err)
	}
	kueue := hub.AddProgram(binaries.Kueue, program, "--kubeconfig="+s.kubeconfig, "--config="+s.configFile, "--zap-log-level=info")
	if err := kueue.Start(); err != nil {
		return nil, err
	}
	if err := s.mountCertificate(ctx); err != nil {
		return nil, fmt.Errorf("certificate of Kueue's webhooks: %w", err)
	}
	return kueue, hub.Serves(ctx, fmt.Sprintf("http://127.0.0.1:%d/readyz", s.healthPort))
}

// setup is what one Kueue is started with.
type setup struct {
	hub                     *rig.Cluster
	webhookPort, healthPort int
	certificates            string // folder
	configFile, kubeconfig  string
}

func newSetup(hub *rig.Cluster, options Options) (*setup, error) {
	s := &setup{hub: hub, kubeconfig: hub.Kubeconfig()}
	var err error
	if s.webhookPort, err = hub.ReservePort(); err != nil {
		return nil, err
	}
	if s.healthPort, err = hub.ReservePort(); err != nil {
		return nil, err
	}
	folder, err := hub.AddFolder("kueue")
	if err != nil {
		return nil, err
	}
	s.certificates, s.configFile = filepath.Join(folder, "certificates"), filepath.Join(folder, "config.yaml")
	if err := os.Mkdir(s.certificates, 0o755); err != nil {
		return nil, err
	}
	if options.User != "" {
		content, err := hub.UserKubeconfigBytes(options.User, "system:masters")
		if err != nil {
			return nil, err
		}
		s.kubeconfig = filepath.Join(folder, "kubeconfig")
		if err := os.WriteFile(s.kubeconfig, content, 0o600); err != nil {
			return nil, err
		}
	}
	content, err := configuration(s, options)
	if err != nil {
		return nil, err
	}
	return s, os.WriteFile(s.configFile, content, 0o600)
}

// mountCertificate does what a kubelet does with a Secret that is mounted: it makes files of it,
// the certificate last.
func (s *setup) mountCertificate(ctx context.Context) error {
	secrets := rig.Object(s.hub.Client().CoreV1().RESTClient(), "secrets", Namespace, webhookSecret)
	object, err := secrets.Until(ctx, func(o runtime.Object) bool {
		secret, ok := o.(*corev1.Secret)
		return ok && len(secret.Data["tls.crt"]) > 0
	})
	if err != nil {
		return err
	}
	for _, name := range []string{"ca.crt", "tls.key", "tls.crt"} {
		content := object.(*corev1.Secret).Data[name]
		if err := os.WriteFile(filepath.Join(s.certificates, name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}
