package chart_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jobferry/jobferry/e2e/chart/charttest"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
)

// release is a chart in a cluster, under its own name.
type release struct {
	*rigtest.Fixture
	t       *testing.T
	cluster *rig.Cluster
	chart   string
}

func newRelease(t *testing.T, cluster, chart string) *release {
	t.Helper()
	f := rigtest.For(t)
	return &release{Fixture: f, t: t, cluster: f.Cluster(cluster), chart: chart}
}

func (r *release) helm(args ...string) string {
	r.t.Helper()
	return charttest.HelmIn(r.t, r.cluster, args...)
}

// install installs the chart, or the one in a folder, and has it uninstalled after the test.
func (r *release) install(folder string, args ...string) {
	r.t.Helper()
	r.helm(append([]string{"install", r.chart, folder, "--create-namespace"}, args...)...)
	r.t.Cleanup(func() { r.helm("uninstall", r.chart, "--ignore-not-found", "--wait") })
}

// kubectl runs kubectl as the administrator.
func (r *release) kubectl(args ...string) string {
	r.t.Helper()
	return r.Kubectl(r.cluster, "", args...)
}

// left are the objects of the release that exist, of all kinds.
func (r *release) left() []string {
	r.t.Helper()
	kinds := strings.Fields(r.kubectl("api-resources", "--verbs=list", "-o", "name"))
	found := r.kubectl("get", strings.Join(kinds, ","), "--all-namespaces", "-o", "name", "--ignore-not-found",
		"-l", "app.kubernetes.io/instance="+r.chart)
	return strings.Fields(found)
}

// older is a copy of the chart as an earlier version may have been: its CRD lacks a field.
func older(t *testing.T, chart, field string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), chart)
	if err := os.CopyFS(dir, os.DirFS(chartDir(chart))); err != nil {
		t.Fatal(err)
	}
	edit(t, filepath.Join(dir, "Chart.yaml"), func(text string) string {
		return strings.Replace(text, "version: 0.1.0", "version: 0.0.9", 1)
	})
	edit(t, filepath.Join(dir, "files", "crd", "jobferry.dev_workerclusters.yaml"), func(text string) string {
		return strings.Replace(text, "              "+field+":\n", "              "+field+"Before:\n", 1)
	})
	return dir
}

func edit(t *testing.T, file string, change func(string) string) {
	t.Helper()
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	after := change(string(before))
	if after == string(before) {
		t.Fatalf("%s: nothing changed", file)
	}
	if err := os.WriteFile(file, []byte(after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A release's whole life: what an older chart installed is upgraded, its CRD, too; what the
// administrators made outlives the release, and is there for the next one.
func TestLifeOfARelease(t *testing.T) {
	r := newRelease(t, "hub", hubChart)
	r.install(older(t, hubChart, "weight"))
	r.established()
	r.Kubectl(r.cluster, `{"apiVersion":"jobferry.dev/v1alpha1","kind":"WorkerCluster","metadata":{"name":"east"},
		"spec":{"kubeconfigSecret":"east"}}`, "create", "-f", "-")
	weigh := []string{"patch", "workercluster", "east", "--type=merge", "-p", `{"spec":{"weight":7}}`}
	r.kubectl(weigh...)
	if got := r.weight(); got != "" {
		t.Errorf("the older CRD kept the weight %s", got)
	}

	r.helm("upgrade", r.chart, chartDir(hubChart), "--set", "replicas=3")
	r.established()
	r.kubectl(weigh...)
	if got := r.weight(); got != "7" {
		t.Errorf("after the upgrade, the weight is %q: the CRD is still the old one", got)
	}
	if got := r.kubectl("get", "deployment", "jobferry-manager", "-n", namespace, "-o", "jsonpath={.spec.replicas}"); got != "3" {
		t.Errorf("%s replicas", got)
	}

	r.helm("uninstall", r.chart, "--wait")
	if left := r.left(); len(left) != 1 || left[0] != "customresourcedefinition.apiextensions.k8s.io/workerclusters.jobferry.dev" {
		t.Errorf("uninstalled, it leaves %v", left)
	}
	if got := r.weight(); got != "7" {
		t.Errorf("WorkerClusters are gone with the release (weight %q)", got)
	}

	r.helm("install", r.chart, chartDir(hubChart), "--set", "crds.keep=false")
	r.helm("uninstall", r.chart, "--wait")
	if left := r.left(); len(left) > 0 {
		t.Errorf("uninstalled for good, it leaves %v", left)
	}
}

func (r *release) established() {
	r.t.Helper()
	r.AwaitCRDs(r.cluster, "workerclusters.jobferry.dev")
}

func (r *release) weight() string {
	r.t.Helper()
	return r.kubectl("get", "workercluster", "east", "-o", "jsonpath={.spec.weight}")
}
