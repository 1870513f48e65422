package trainertest

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

// startTimeout ends a start that hangs.
const startTimeout = 5 * time.Minute

// mountFolder is where Trainer looks whether its certificate is mounted: a folder that all
// processes of a machine share. It reads the certificate itself from the same folder in $TMPDIR.
const mountFolder = "/tmp/k8s-webhook-server/serving-certs"

// Start installs Trainer on a hub, starts its manager, and returns when its webhooks answer. It
// ends with the hub. If the program is not in the cache, it's built first, which takes minutes.
func Start(ctx context.Context, hub *rig.Cluster) error {
	program, err := binaries.Tool(ctx, binaries.Trainer, binaries.Lines(os.Stderr))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	webhookPort, err := hub.ReservePort()
	if err != nil {
		return err
	}
	healthPort, err := hub.ReservePort()
	if err != nil {
		return err
	}
	if err := install(ctx, hub, webhookPort); err != nil {
		return fmt.Errorf("install Trainer: %w", err)
	}
	folder, err := makeFolders(hub)
	if err != nil {
		return err
	}
	account, err := hub.ServiceAccountKubeconfig(ctx, Namespace, manager)
	if err != nil {
		return err
	}
	kubeconfig := filepath.Join(folder, "kubeconfig")
	if err := os.WriteFile(kubeconfig, account, 0o600); err != nil {
		return err
	}
	health := fmt.Sprintf("127.0.0.1:%d", healthPort)
	controller := hub.AddProgram(binaries.Trainer, program, "--kubeconfig="+kubeconfig,
		"--health-probe-bind-address="+health, fmt.Sprintf("--webhook-server-port=%d", webhookPort))
	if err := startWithCertificate(ctx, hub, controller, folder); err != nil {
		return err
	}
	return hub.Serves(ctx, "http://"+health+"/readyz")
}

// startWithCertificate starts the manager twice: in its first life, it makes the certificate that a
// kubelet would mount for the second.
func startWithCertificate(ctx context.Context, hub *rig.Cluster, controller *rig.Component, folder string) error {
	if err := controller.Start(); err != nil {
		return err
	}
	made, err := awaitCertificate(ctx, hub)
	if err != nil {
		return err
	}
	if err := controller.Kill(); err != nil {
		return err
	}
	for name, content := range made.Data {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			return err
		}
	}
	return controller.Start()
}

// makeFolders makes the folder that the manager reads its certificate from, and what it takes for a
// mount. The latter stays: another hub's Trainer may look for it.
func makeFolders(hub *rig.Cluster) (folder string, err error) {
	parent, err := hub.AddFolder("k8s-webhook-server")
	if err != nil {
		return "", err
	}
	folder = filepath.Join(parent, "serving-certs")
	for _, made := range []string{folder, mountFolder} {
		if err := os.MkdirAll(made, 0o755); err != nil {
			return "", err
		}
	}
	mark, err := os.OpenFile(filepath.Join(mountFolder, corev1.TLSCertKey), os.O_CREATE|os.O_RDONLY, 0o644)
	if err != nil {
		return "", err
	}
	return folder, mark.Close()
}

// awaitCertificate waits until the manager has made its certificate.
func awaitCertificate(ctx context.Context, hub *rig.Cluster) (*corev1.Secret, error) {
	object := rig.Object(hub.Client().CoreV1().RESTClient(), "secrets", Namespace, secret)
	found, err := object.Until(ctx, func(o runtime.Object) bool {
		s, ok := o.(*corev1.Secret)
		return ok && len(s.Data[corev1.TLSCertKey]) > 0
	})
	if err != nil {
		return nil, fmt.Errorf("wait for Trainer's certificate: %w", err)
	}
	return found.(*corev1.Secret), nil
}
