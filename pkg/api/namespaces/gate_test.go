package namespaces_test

import (
	"strings"
	"testing"

	"github.com/jobferry/jobferry/pkg/api/namespaces"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

func TestGate(t *testing.T) {
	labelled := func(value string) map[string]string { return map[string]string{v1alpha1.LabelDispatch: value} }
	rows := map[string]struct {
		gate   namespaces.Gate
		name   string
		labels map[string]string
		want   string // part of the answer; empty: dispatched
	}{
		"without labels":            {namespaces.Gate{}, "team", nil, "namespace team is not dispatched: to allow it, an admin of the hub labels it jobferry.dev/dispatch=allowed"},
		"enabled":                   {namespaces.Gate{}, "team", labelled("enabled"), ""},
		"allowed":                   {namespaces.Gate{}, "team", labelled("allowed"), ""},
		"another value":             {namespaces.Gate{}, "team", labelled("Enabled"), `is "Enabled", and must be allowed or enabled`},
		"an empty value":            {namespaces.Gate{}, "team", labelled(""), `is "", and must be`},
		"all":                       {namespaces.Gate{All: true}, "team", nil, ""},
		"all, and another value":    {namespaces.Gate{All: true}, "team", labelled("no"), ""},
		"kube-system":               {namespaces.Gate{}, "kube-system", labelled("enabled"), "never dispatched, whatever its labels"},
		"kube-anything":             {namespaces.Gate{All: true}, "kube-flannel", labelled("allowed"), "never dispatched"},
		"not kube-":                 {namespaces.Gate{}, "kubeflow", labelled("allowed"), ""},
		"the manager's":             {namespaces.Gate{Own: "ferry"}, "ferry", labelled("allowed"), "never dispatched"},
		"the manager's, all":        {namespaces.Gate{Own: "ferry", All: true}, "ferry", nil, "never dispatched"},
		"Jobferry's in a worker":    {namespaces.Gate{Own: "ferry", All: true}, "jobferry-system", labelled("enabled"), "never dispatched"},
		"a name that looks like it": {namespaces.Gate{Own: "ferry"}, "ferry-2", labelled("allowed"), ""},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			got := row.gate.Closed(row.name, row.labels)
			if (got == "") != (row.want == "") || !strings.Contains(got, row.want) {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}
