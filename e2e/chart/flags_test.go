package chart_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// notInConfig are flags that the charts set by themselves, or that mean nothing in a Pod.
var notInConfig = map[string]string{
	"kubeconfig":                "in a Pod the ServiceAccount counts",
	"context":                   "in a Pod the ServiceAccount counts",
	"leader-elect":              "always on: replicas may be raised at any time",
	"namespace":                 "the release's",
	"metrics-bind-address":      "what the Service and the monitors lead to",
	"health-probe-bind-address": "what the probes ask",
	"metrics-secure":            "metrics.secure, with the permissions it takes",
	"version":                   "prints and ends",

	"dispatch-all-namespaces": "dispatch.allNamespaces",
	"default-pod-security":    "dispatch.defaultPodSecurity",
	"keep-on-hub":             "dispatch.keepOnHub",
	"group-kinds":             "dispatch.groups",

	"carry-service-account-annotations": "carry.serviceAccountAnnotations",

	"admission-webhook":              "admission.mode",
	"admission-webhook-bind-address": "what the Service leads to",
	"admission-webhook-service":      "the chart's Service",
	"admission-webhook-cert-dir":     "admission.certSecret",

	"subresources-bind-address": "subresources.enabled",
	"subresources-service":      "the chart's Service",
	"subresources-cert-secret":  "the chart's Secret",
	"subresources-cert-file":    "subresources.certSecret",
	"subresources-key-file":     "subresources.certSecret",

	"pods":                     "pods.enabled",
	"pods-address":             "the Pod's own",
	"pods-port":                "pods.port",
	"pods-request-certificate": "pods.requestCertificate",

	"kueue-disabled":  "kueue.enabled",
	"kueue-namespace": "kueue.namespace",

	"drop-in":    "dropIn",
	"managed-by": "managedBy",
	"as":         "impersonate",
}

var flagLine = regexp.MustCompile(`(?m)^ +--([a-z-]+)`)

// Each flag of a program can be set by the chart, and the chart knows no other.
func TestEveryFlagIsAValue(t *testing.T) {
	for chart, name := range map[string]string{hubChart: "jobferry-manager", workerChart: "jobferry-worker"} {
		t.Run(chart, func(t *testing.T) {
			program := program(t, name)
			help, err := exec.CommandContext(t.Context(), program, "--help").Output()
			if err != nil {
				t.Fatal(err)
			}
			known := configKeys(t, chart)
			for _, match := range flagLine.FindAllStringSubmatch(string(help), -1) {
				flag := match[1]
				if notInConfig[flag] != "" {
					continue
				}
				if i := slices.Index(known, camel(flag)); i >= 0 {
					known = slices.Delete(known, i, i+1)
				} else {
					t.Errorf("values.schema.json has no config.%s: flag --%s can't be set", camel(flag), flag)
				}
			}
			if len(known) > 0 {
				t.Errorf("%s has no flags for config.%v", name, known)
			}
		})
	}
}

// configKeys are the names under config in a chart's schema.
func configKeys(t *testing.T, chart string) (keys []string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(chartDir(chart), "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Properties struct {
			Config struct {
				Properties map[string]any
			}
		}
	}
	if err := json.Unmarshal(content, &schema); err != nil {
		t.Fatal(err)
	}
	for key := range schema.Properties.Config.Properties {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// camel turns worker-qps into workerQps.
func camel(flag string) string {
	words := strings.Split(flag, "-")
	for i := 1; i < len(words); i++ {
		words[i] = strings.ToUpper(words[i][:1]) + words[i][1:]
	}
	return strings.Join(words, "")
}
