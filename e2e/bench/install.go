package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/e2e/checkout"
	"github.com/jobferry/jobferry/e2e/product"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

const (
	managerNamespace = v1alpha1.SystemNamespace
	managerProgram   = "jobferry-manager"
)

// installed is the manager's program, what it needs, and where its log goes.
type installed struct{ program, kubeconfig, dir string }

// ground is what a run measures on: clusters, and the manager that is installed in them.
type ground struct {
	fleet   *fleet
	product installed
}

// onGround starts clusters with some namespaces, installs the manager, whose program is built if
// there is none, and calls do. Afterwards it stops the clusters.
func onGround(ctx context.Context, program string, hub rig.Options, workers []rig.Options, namespaces []string, do func(ground) error) error {
	return inFolder(func(dir string) (err error) {
		var g ground
		if g.fleet, err = newFleet(ctx, []rig.Options{hub}, workers...); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, g.fleet.stop()) }()
		for _, namespace := range namespaces {
			if err := makeNamespace(ctx, namespace, g.fleet.all()...); err != nil {
				return err
			}
		}
		if program == "" {
			if program, err = product.Build(ctx, dir, managerProgram); err != nil {
				return err
			}
		}
		if g.product, err = install(ctx, g.fleet, program, dir); err != nil {
			return err
		}
		return do(g)
	})
}

// inFolder calls do with a folder, which it removes afterwards.
func inFolder(do func(dir string) error) error {
	dir, err := os.MkdirTemp("", "jobferry-bench-")
	if err != nil {
		return err
	}
	return errors.Join(do(dir), os.RemoveAll(dir))
}

// install puts what the manager needs on the hub, and registers the workers.
func install(ctx context.Context, f *fleet, program, dir string) (_ installed, err error) {
	if _, err := f.hub.Kubectl(ctx, "", "apply", "--server-side", "-k", checkout.Path("config", "crd")); err != nil {
		return installed{}, err
	}
	if err := f.hub.AwaitCRDs(ctx, "workerclusters.jobferry.dev"); err != nil {
		return installed{}, err
	}
	if err := makeNamespace(ctx, managerNamespace, f.hub); err != nil {
		return installed{}, err
	}
	for _, w := range f.workers {
		if err := register(ctx, f.hub, w); err != nil {
			return installed{}, err
		}
	}
	content, err := f.hub.UserKubeconfigBytes(managerUser, managerGroup)
	if err != nil {
		return installed{}, err
	}
	kubeconfig := filepath.Join(dir, "hub.kubeconfig")
	return installed{program, kubeconfig, dir}, os.WriteFile(kubeconfig, content, 0o600)
}

func register(ctx context.Context, hub, worker *site) error {
	content, err := worker.UserKubeconfigBytes(managerUser, managerGroup)
	if err != nil {
		return err
	}
	if worker.HasProxy() {
		if content, err = worker.ThroughProxy(content); err != nil {
			return err
		}
	}
	if worker.embedded {
		if _, err := hub.Kubectl(ctx, embeddedSpec(worker.Name()), "create", "-f", "-"); err != nil {
			return err
		}
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: managerNamespace, Name: worker.Name(),
			Labels: map[string]string{"jobferry.dev/worker-cluster": "true"},
		},
		Data: map[string][]byte{"kubeconfig": content},
	}
	_, err = hub.client.CoreV1().Secrets(managerNamespace).Create(ctx, secret, metav1.CreateOptions{})
	return err
}

// rotate gives the hub credentials of another user of a worker.
func rotate(ctx context.Context, hub, worker *site, user string) error {
	content, err := worker.UserKubeconfigBytes(user, managerGroup)
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"data": map[string][]byte{"kubeconfig": content}})
	if err != nil {
		return err
	}
	_, err = hub.client.CoreV1().Secrets(managerNamespace).Patch(ctx, worker.Name(), types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// embeddedSpec is a WorkerCluster as an admin makes it for the embedded Job controller.
func embeddedSpec(name string) string {
	return fmt.Sprintf(`{"apiVersion":%q,"kind":"WorkerCluster","metadata":{"name":%q},"spec":{"kubeconfigSecret":%q,"jobController":%q}}`,
		v1alpha1.GroupVersion, name, name, v1alpha1.JobControllerEmbedded)
}

// awaitWorkers returns when the manager has said that all workers are ready.
func awaitWorkers(ctx context.Context, f *fleet) error {
	for _, w := range f.workers {
		if _, err := f.hub.Kubectl(ctx, "", "wait", "--for=create", "workercluster/"+w.Name(), "--timeout=60s"); err != nil {
			return err
		}
		if _, err := f.hub.Kubectl(ctx, "", "wait", "--for=condition=Ready", "workercluster/"+w.Name(), "--timeout=60s"); err != nil {
			return err
		}
	}
	return nil
}
