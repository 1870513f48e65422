package chart_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jobferry/jobferry/e2e/chart/charttest"
)

// The dashboard arrives as it's in the file, where Grafana's sidecar looks for it.
func TestDashboard(t *testing.T) {
	file, err := os.ReadFile(filepath.Join(chartDir(hubChart), "files", "dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	object := render(t, hubChart, "--set", "monitoring.dashboard.enabled=true,monitoring.dashboard.namespace=monitoring").
		one(t, "ConfigMap", "jobferry-dashboard")
	data := object.Object["data"].(map[string]any)["jobferry.json"].(string)
	if !json.Valid(file) {
		t.Error("the file isn't JSON")
	}
	if diff := cmp.Diff(strings.TrimSpace(string(file)), strings.TrimSpace(data)); diff != "" {
		t.Errorf("-file +chart:\n%s", diff)
	}
	if object.GetNamespace() != "monitoring" || object.GetLabels()["grafana_dashboard"] != "1" {
		t.Errorf("namespace %s, labels %v", object.GetNamespace(), object.GetLabels())
	}
}

// The alerts arrive as they're in the file, but for those that aren't wanted.
func TestAlertsAreTheFiles(t *testing.T) {
	file, err := os.ReadFile(filepath.Join(chartDir(hubChart), "files", "alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	want := parse(t, string(file))[0].Object["groups"]
	all := render(t, hubChart, "--set", "monitoring.prometheusRule.enabled=true").one(t, "PrometheusRule", "jobferry-manager")
	if diff := cmp.Diff(want, all.Object["spec"].(map[string]any)["groups"]); diff != "" {
		t.Errorf("-file +chart:\n%s", diff)
	}
	fewer := charttest.Helm(t, template(hubChart, "--set", "monitoring.prometheusRule.enabled=true,monitoring.prometheusRule.disabled={JobferryStatusLate}")...)
	if strings.Contains(fewer, "alert: JobferryStatusLate") || !strings.Contains(fewer, "alert: JobferryStatusRejected") {
		t.Error("the alert that isn't wanted is there, or another isn't")
	}
}
