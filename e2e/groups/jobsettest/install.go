package jobsettest

import (
	"context"
	"encoding/base64"
	"fmt"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/jobferry/jobferry/e2e/rig/binaries"
)

// Namespace is JobSet's own.
const Namespace = "jobset-system"

// account is the ServiceAccount of JobSet's Deployment.
const account = "jobset-controller-manager"

func moduleDir(ctx context.Context) (string, error) {
	return binaries.ModuleDir(ctx, "jobset", "sigs.k8s.io/jobset")
}

// install brings what JobSet's kustomization brings. Its Deployment has no replicas.
func (s *setup) install(ctx context.Context) error {
	module, err := moduleDir(ctx)
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
	return s.hub.AwaitCRDs(ctx, "jobsets.jobset.x-k8s.io")
}

// adapt has the process in the place of the Deployment's Pods: the Deployment has no replicas, and
// the webhooks lead to the process.
func (s *setup) adapt(manifests string) (string, error) {
	var adapted []string
	for document := range strings.SplitSeq(manifests, "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			return "", err
		}
		if object.GetKind() == "Deployment" {
			if err := unstructured.SetNestedField(object.Object, int64(0), "spec", "replicas"); err != nil {
				return "", err
			}
		}
		s.redirect(object.Object)
		content, err := yaml.Marshal(object.Object)
		if err != nil {
			return "", err
		}
		adapted = append(adapted, string(content))
	}
	return strings.Join(adapted, "---\n"), nil
}

// redirect gives each webhook in a value the process's address, and its certificate's authority.
func (s *setup) redirect(value any) {
	switch value := value.(type) {
	case map[string]any:
		if config, ok := value["clientConfig"].(map[string]any); ok {
			value["clientConfig"] = map[string]any{
				"url":      fmt.Sprintf("https://%s:%d%s", loopback, s.webhookPort, config["service"].(map[string]any)["path"]),
				"caBundle": base64.StdEncoding.EncodeToString(s.authority.PEM),
			}
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
