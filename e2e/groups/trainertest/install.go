package trainertest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/binaries"
)

// Group is Trainer's API group, and Namespace its own.
const (
	Group     = "trainer.kubeflow.org"
	Namespace = "kubeflow-system"
)

// Names of Trainer's own manifests.
const (
	manager = "kubeflow-trainer-controller-manager" // its Deployment, ServiceAccount and Service
	secret  = "kubeflow-trainer-webhook-cert"
)

// objects are what Trainer's kustomization adds to its bases. No kube-proxy routes a Service's own
// address here; one with an external name is what the API server connects to itself.
const objects = `
apiVersion: v1
kind: Namespace
metadata: {name: ` + Namespace + `}
---
apiVersion: v1
kind: Service
metadata: {name: ` + manager + `}
spec: {type: ExternalName, externalName: localhost}
---
apiVersion: v1
kind: Secret
metadata: {name: ` + secret + `}
`

// kustomization is Trainer's without its Deployment and its JobSet, and with the webhooks' port.
const kustomization = `
namespace: ` + Namespace + `
resources: [objects.yaml, base/crds, base/rbac, base/webhook]
patches:
- target: {kind: ValidatingWebhookConfiguration}
  patch: |
    - {op: add, path: /webhooks/0/clientConfig/service/port, value: %[1]d}
    - {op: add, path: /webhooks/1/clientConfig/service/port, value: %[1]d}
    - {op: add, path: /webhooks/2/clientConfig/service/port, value: %[1]d}
`

// install brings what Trainer's kustomization brings, but for its Deployment and its JobSet.
func install(ctx context.Context, hub *rig.Cluster, webhookPort int) error {
	module, err := binaries.ModuleDir(ctx, "trainer", "github.com/kubeflow/trainer/v2")
	if err != nil {
		return err
	}
	folder, err := hub.AddFolder("trainer")
	if err != nil {
		return err
	}
	if err := os.CopyFS(filepath.Join(folder, "base"), os.DirFS(filepath.Join(module, "manifests", "base"))); err != nil {
		return err
	}
	for name, content := range map[string]string{
		"objects.yaml": objects, "kustomization.yaml": fmt.Sprintf(kustomization, webhookPort),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			return err
		}
	}
	if _, err := hub.Kubectl(ctx, "", "apply", "--server-side", "-k", folder); err != nil {
		return err
	}
	return hub.AwaitCRDs(ctx, "clustertrainingruntimes."+Group, "trainjobs."+Group)
}
