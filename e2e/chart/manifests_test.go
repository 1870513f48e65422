package chart_test

import (
	"encoding/json"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The Pod that the Deployment asks for is let in where the Pod Security Standard "restricted" is
// enforced, and a strict API server takes all that the charts make.
func TestManifestsAreAccepted(t *testing.T) {
	for chart, cluster := range map[string]string{hubChart: "hub", workerChart: "bare"} {
		r := newRelease(t, cluster, chart)
		ns := r.Namespace(r.cluster)
		r.kubectl("label", "namespace", ns, "pod-security.kubernetes.io/enforce=restricted")
		for name, values := range valueSets(t, chart) {
			t.Run(chart+"/"+name, func(t *testing.T) {
				args := []string{"-f", values, "--namespace", ns}
				if chart == hubChart {
					args = append(args, "--set", "kueue.namespace="+ns) // there is no other here
				}
				all := render(t, chart, args...)
				r.accepts(t, all)
				for _, object := range all.of("Deployment") {
					d := as[appsv1.Deployment](t, object)
					pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "pod"}, Spec: d.Spec.Template.Spec}
					pod.Spec.ServiceAccountName = "default"
					_, err := r.cluster.Client().CoreV1().Pods(ns).Create(r.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
}

// accepts has the API server look at objects of its own kinds without keeping them.
func (r *release) accepts(t *testing.T, all objects) {
	t.Helper()
	list := map[string]any{"apiVersion": "v1", "kind": "List"}
	var items []any
	for _, object := range all {
		if !strings.HasPrefix(object.GetAPIVersion(), "monitoring.coreos.com/") {
			items = append(items, object.Object)
		}
	}
	list["items"] = items
	content, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	out, err := r.cluster.Kubectl(r.Context(), string(content), "apply", "--dry-run=server", "--validate=strict", "-f", "-")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(out, "(server dry run)"); got != len(items) {
		t.Errorf("%d of %d objects were looked at:\n%s", got, len(items), out)
	}
	if len(items) == 0 {
		t.Error("there are no objects")
	}
}
