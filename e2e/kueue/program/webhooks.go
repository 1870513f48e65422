package program

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	yamlutil "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/jobferry/jobferry/e2e/rig"
)

// The names that Kueue's own manifests give its webhooks' configurations.
const (
	mutating   = "kueue-mutating-webhook-configuration"
	validating = "kueue-validating-webhook-configuration"
)

// installWebhooks brings the configurations of Kueue's webhooks, leading to its process.
func installWebhooks(ctx context.Context, hub *rig.Cluster, file string, port int) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var manifests []byte
	documents := yamlutil.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		adapted, err := adapt(document, port)
		if err != nil {
			return err
		}
		manifests = append(append(manifests, "---\n"...), adapted...)
	}
	_, err = hub.Kubectl(ctx, string(manifests), "apply", "--server-side", "-f", "-")
	return err
}

// adapt gives a configuration of webhooks its name, and each webhook its Service and the namespaces
// that it leaves alone, as Kueue's kustomization does.
func adapt(document []byte, port int) ([]byte, error) {
	configuration := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(document, &configuration.Object); err != nil {
		return nil, err
	}
	configuration.SetName(validating)
	if strings.HasPrefix(configuration.GetKind(), "Mutating") {
		configuration.SetName(mutating)
	}
	webhooks, _, err := unstructured.NestedSlice(configuration.Object, "webhooks")
	if err != nil {
		return nil, err
	}
	for _, each := range webhooks {
		webhook := each.(map[string]any)
		path, _, err := unstructured.NestedString(webhook, "clientConfig", "service", "path")
		if err != nil {
			return nil, err
		}
		webhook["clientConfig"] = clientConfig(path, port)
		webhook["namespaceSelector"] = map[string]any{"matchExpressions": []any{map[string]any{
			"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": []any{"kube-system", Namespace},
		}}}
	}
	if err := unstructured.SetNestedSlice(configuration.Object, webhooks, "webhooks"); err != nil {
		return nil, err
	}
	return yaml.Marshal(configuration.Object)
}
