package admission

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"
)

func readFile(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{"..", "..", ".."}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Helm reads only what is in the chart, kustomize only what is beside its own file: `make generate`
// copies from there.
func TestChartHasWhatKustomizeHas(t *testing.T) {
	for file, folder := range map[string]string{
		"jobs-policy.yaml": "checks", "warnings-policy.yaml": "checks", "managed-by-policy.yaml": "checks", "manager-policy.yaml": "checks",
		"dispatch-policy.yaml": "policy", "dispatch-webhook.yaml": "webhook", "manager-webhook-policy.yaml": "webhook",
	} {
		if readFile(t, "charts", "jobferry", "files", "admission", file) != readFile(t, "config", "admission", folder, file) {
			t.Errorf("config/admission/%s/%s differs from charts/jobferry/files/admission: run make generate", folder, file)
		}
		if !strings.Contains(readFile(t, "config", "admission", folder, "kustomization.yaml"), "- "+file) {
			t.Errorf("config/admission/%s/kustomization.yaml doesn't list %s", folder, file)
		}
	}
}

// The configuration leads to where the manager serves, and is the one that it injects into.
func TestConfigurationLeadsToTheManager(t *testing.T) {
	var found admissionregistrationv1.MutatingWebhookConfiguration
	if err := yaml.UnmarshalStrict([]byte(readFile(t, "config", "admission", "webhook", "dispatch-webhook.yaml")), &found); err != nil {
		t.Fatal(err)
	}
	service := found.Webhooks[0].ClientConfig.Service
	if found.Name != configurationName || *service.Path != path || service.Name != DefaultOptions().Service {
		t.Errorf("%s leads to %s%s", found.Name, service.Name, *service.Path)
	}
	for _, file := range []string{"config/webhook/service.yaml", "charts/jobferry/templates/webhook.yaml"} {
		if !strings.Contains(readFile(t, file), "name: "+secretName+"\n") {
			t.Errorf("%s makes no Secret %s", file, secretName)
		}
	}
}
