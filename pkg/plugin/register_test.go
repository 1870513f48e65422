package plugin

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/plugin/registration"
)

// registers is a hub on which west has a namespaceSelector, and is registered for namespaces.
// Without any, it isn't registered yet.
func registers(t *testing.T, namespaces string, selector *metav1.LabelSelector) *fakeHub {
	h := newHub(t)
	h.answers["/api/v1/namespaces/kube-system"] = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "1a2b3c4d"}}
	west := v1alpha1.WorkerCluster{ObjectMeta: metav1.ObjectMeta{Name: "west"}}
	west.Spec.NamespaceSelector = selector
	h.answers["/apis/jobferry.dev/v1alpha1/workerclusters"] = &v1alpha1.WorkerClusterList{Items: []v1alpha1.WorkerCluster{west}}
	if namespaces != "" {
		h.answers["/api/v1/namespaces/jobferry-system/secrets/west"] = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: "jobferry-system", Name: "west", Labels: map[string]string{v1alpha1.LabelWorkerCluster: "true"},
			Annotations: map[string]string{v1alpha1.AnnotationNamespaces: namespaces},
		}}
	}
	return h
}

// A worker that is registered for some namespaces takes the Jobs of these only, unless its admin
// has chosen otherwise.
func TestRegisterSelectsNamespaces(t *testing.T) {
	const (
		ofA     = "  namespaceSelector:\n    matchExpressions:\n    - key: kubernetes.io/metadata.name\n      operator: In\n      values:\n      - team-a\n"
		ofAAndB = ofA + "      - team-b\n"
		keeps   = "warning: west keeps its namespaceSelector, which isn't by name: it must select only namespaces in team-a\n"
	)
	own := &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}
	for name, row := range map[string]struct {
		was      string
		selector *metav1.LabelSelector
		flags    []string
		want     string
		warns    bool
	}{
		"the first time":       {"", nil, []string{"--namespaces", "team-b,team-a"}, ofAAndB, false},
		"in all":               {"", nil, []string{"--all-namespaces"}, "", false},
		"in fewer":             {"team-a,team-b", registration.SelectNames([]string{"team-a", "team-b"}), []string{"--namespaces", "team-a"}, ofA, false},
		"again":                {"team-a", registration.SelectNames([]string{"team-a"}), nil, ofA, false},
		"from some to all":     {"team-a", registration.SelectNames([]string{"team-a"}), []string{"-A"}, "", false},
		"all, with a selector": {"*", registration.SelectNames([]string{"team-a"}), []string{"-A"}, ofA, false},
		"the admin's own":      {"", own, []string{"--namespaces", "team-a"}, "", true},
		"the admin's, again":   {"team-a", own, nil, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			h := registers(t, row.was, row.selector)
			args := []string{"register", "west", "--worker-kubeconfig", h.kubeconfig(), "--worker-context", "hub", "--server", "https://10.1.0.5:6443", "--dry-run", "--manifests", "hub"}
			got := h.run(append(args, row.flags...)...)
			cluster, _, _ := strings.Cut(got.out, "kind: Secret")
			if got.code != 0 || strings.Contains(cluster, "namespaceSelector") != (row.want != "") || !strings.Contains(cluster, row.want) {
				t.Errorf("%d %s\n%s", got.code, got.out, got.err)
			}
			if strings.Contains(got.err, keeps) != row.warns {
				t.Errorf("it says %s", got.err)
			}
		})
	}
}
