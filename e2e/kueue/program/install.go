package program

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/binaries"
)

// Namespace is Kueue's own.
const Namespace = "kueue-system"

const (
	modulePath     = "sigs.k8s.io/kueue"
	webhookService = "kueue-webhook-service"
	webhookSecret  = "kueue-webhook-server-cert"
)

// converted are the CRDs with a conversion webhook, as in Kueue's kustomization.
var converted = []string{"localqueues", "clusterqueues", "cohorts", "workloads", "multikueueclusters"}

// install brings what Kueue's manifests bring, but for its Deployment and permissions.
func install(ctx context.Context, hub *rig.Cluster, webhookPort int) error {
	module, err := binaries.ModuleDir(ctx, "kueue", modulePath)
	if err != nil {
		return err
	}
	components := filepath.Join(module, "config", "components")
	if err := installFixtures(ctx, hub); err != nil {
		return err
	}
	if err := installCRDs(ctx, hub, filepath.Join(components, "crd", "bases"), webhookPort); err != nil {
		return err
	}
	return installWebhooks(ctx, hub, filepath.Join(components, "webhook", "manifests.yaml"), webhookPort)
}

func installFixtures(ctx context.Context, hub *rig.Cluster) error {
	core := hub.Client().CoreV1()
	_, err := core.Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}}, metav1.CreateOptions{})
	errs := []error{client.IgnoreAlreadyExists(err)}
	_, err = core.Secrets(Namespace).Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: webhookSecret}}, metav1.CreateOptions{})
	errs = append(errs, client.IgnoreAlreadyExists(err))
	_, err = core.Services(Namespace).Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: webhookService},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
	}, metav1.CreateOptions{})
	return errors.Join(append(errs, client.IgnoreAlreadyExists(err))...)
}

// clientConfig is how the API server reaches Kueue's webhooks.
func clientConfig(path string, port int) map[string]any {
	return map[string]any{"service": map[string]any{
		"namespace": Namespace, "name": webhookService, "path": path, "port": int64(port),
	}}
}

func installCRDs(ctx context.Context, hub *rig.Cluster, folder string, port int) error {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("no CRDs in %s: %w", folder, err)
	}
	var manifests []byte
	var names []string
	for _, file := range files {
		crd, err := load(file)
		if err != nil {
			return err
		}
		if converts(crd.GetName()) {
			conversion := map[string]any{"strategy": "Webhook", "webhook": map[string]any{
				"clientConfig": clientConfig("/convert", port), "conversionReviewVersions": []any{"v1"},
			}}
			if err := unstructured.SetNestedMap(crd.Object, conversion, "spec", "conversion"); err != nil {
				return err
			}
		}
		content, err := yaml.Marshal(crd.Object)
		if err != nil {
			return err
		}
		names = append(names, crd.GetName())
		manifests = append(append(manifests, "---\n"...), content...)
	}
	if _, err := hub.Kubectl(ctx, string(manifests), "apply", "--server-side", "-f", "-"); err != nil {
		return err
	}
	return hub.AwaitCRDs(ctx, names...)
}

func converts(crd string) bool {
	for _, name := range converted {
		if crd == name+".kueue.x-k8s.io" {
			return true
		}
	}
	return false
}

func load(file string) (*unstructured.Unstructured, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	return object, yaml.Unmarshal(content, &object.Object)
}
