package jobsettest

import (
	"context"
	"encoding/base64"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/jobferry/jobferry/e2e/rig/binaries"
)

// Namespace is JobSet's own.
const Namespace = "jobset-system"

// Names that JobSet's kustomization gives, and its module's.
const (
	account        = "jobset-controller-manager"
	webhookService = "jobset-webhook-service"
	modulePath     = "sigs.k8s.io/jobset"
)

// install brings what JobSet's kustomization brings, but for its Deployment.
func (s *setup) install(ctx context.Context) error {
	module, err := binaries.ModuleDir(ctx, "jobset", modulePath)
	if err != nil {
		return err
	}
	manifests, err := s.hub.Kubectl(ctx, "", "kustomize", filepath.Join(module, "config", "default"))
	if err != nil {
		return err
	}
	adapted, err := s.adapt(manifests)
	if err != nil {
		return err
	}
	if _, err := s.hub.Kubectl(ctx, adapted, "apply", "--server-side", "-f", "-"); err != nil {
		return err
	}
	_, err = s.hub.Kubectl(ctx, "", "wait", "--for=condition=Established", "--timeout=5m", "crd/jobsets.jobset.x-k8s.io")
	return err
}

// adapt leaves out the Deployment, and has the webhooks lead to the process.
func (s *setup) adapt(manifests string) (string, error) {
	var adapted []string
	for document := range strings.SplitSeq(manifests, "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			return "", err
		}
		switch {
		case object.GetKind() == "Deployment":
			continue
		case object.GetKind() == "Service" && object.GetName() == webhookService:
			object.Object["spec"] = map[string]any{"type": "ExternalName", "externalName": "localhost"}
		default:
			s.redirect(object.Object)
		}
		content, err := yaml.Marshal(object.Object)
		if err != nil {
			return "", err
		}
		adapted = append(adapted, string(content))
	}
	return strings.Join(adapted, "---\n"), nil
}

// redirect gives each webhook in a value the port and the certificate's authority.
func (s *setup) redirect(value any) {
	switch value := value.(type) {
	case map[string]any:
		if config, ok := value["clientConfig"].(map[string]any); ok {
			config["caBundle"] = base64.StdEncoding.EncodeToString(s.authority.PEM)
			config["service"].(map[string]any)["port"] = s.webhookPort
		}
		for _, child := range value {
			s.redirect(child)
		}
	case []any:
		for _, child := range value {
			s.redirect(child)
		}
	}
}
