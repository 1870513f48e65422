package admission

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/jobferry/jobferry/pkg/api/namespaces"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// Jobs and CronJobs that name the dispatcher are refused where the manager would leave them alone.
func TestNamespacesPolicy(t *testing.T) {
	p := loadPolicy(t, "jobs-policy.yaml")
	ours := newJob(v1alpha1.ManagedByDispatcher)
	labelled := func(value string) map[string]string { return map[string]string{v1alpha1.LabelDispatch: value} }
	const wayOut = "have an admin allow it: kubectl label namespace ns jobferry.dev/dispatch=allowed"
	none := map[string]string{}
	rows := map[string]struct {
		request
		want string // part of the only message; empty: let through
	}{
		"without a label":                    {request{object: ours, namespace: none}, wayOut},
		"another value":                      {request{object: ours, namespace: labelled("Enabled")}, wayOut},
		"allowed":                            {request{object: ours, namespace: labelled("allowed")}, ""},
		"enabled":                            {request{object: ours, namespace: labelled("enabled")}, ""},
		"somebody else's Job":                {request{object: newJob("example.org/other"), namespace: none}, ""},
		"nobody's Job":                       {request{object: newJob(""), namespace: none}, ""},
		"kube-system":                        {request{object: ours, in: "kube-system", namespace: labelled("enabled")}, "create the Job in another namespace"},
		"kube-system, nobody's Job":          {request{object: newJob("", selector, "a b"), in: "kube-system", namespace: labelled("enabled")}, ""},
		"the manager's":                      {request{object: ours, in: "jobferry-system", namespace: labelled("allowed")}, "create the Job in another namespace"},
		"there before":                       {request{object: newJob(v1alpha1.ManagedByDispatcher, "note", "x"), old: ours, namespace: none}, ""},
		"its status":                         {request{object: ours, old: ours, subresource: "status", namespace: none}, ""},
		"CronJob":                            {request{kind: "cronjobs", object: cron(newJob(v1alpha1.ManagedByDispatcher)), namespace: none}, wayOut},
		"CronJob, allowed":                   {request{kind: "cronjobs", object: cron(newJob(v1alpha1.ManagedByDispatcher)), namespace: labelled("allowed")}, ""},
		"CronJob, there before":              {request{kind: "cronjobs", object: cron(newJob(v1alpha1.ManagedByDispatcher, "note", "x")), old: cron(newJob(v1alpha1.ManagedByDispatcher)), namespace: none}, ""},
		"CronJob, changed to the dispatcher": {request{kind: "cronjobs", object: cron(newJob(v1alpha1.ManagedByDispatcher)), old: cron(newJob("")), namespace: none}, wayOut},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			got := p.denied(row.request)
			if row.want == "" && len(got) != 0 || row.want != "" && (len(got) != 1 || !strings.Contains(got[0], row.want)) {
				t.Errorf("denied %q, want %q", got, row.want)
			}
		})
	}
}

// Policy and manager have the same rules.
func TestNamespacesPolicyAgreesWithTheManager(t *testing.T) {
	p := loadPolicy(t, "jobs-policy.yaml")
	gate := namespaces.Gate{Own: v1alpha1.SystemNamespace}
	for _, name := range []string{"ns", "kube-system", "kube-", "kube", "kubeflow", "jobferry-system", "jobferry-system-2"} {
		for _, value := range []string{"enabled", "allowed", "", "true", "ENABLED"} {
			labels := map[string]string{v1alpha1.LabelDispatch: value}
			denied := p.denied(request{object: runtime.Object(newJob(v1alpha1.ManagedByDispatcher)), in: name, namespace: labels})
			if closed := gate.Closed(name, labels); (closed != "") != (len(denied) > 0) {
				t.Errorf("namespace %s with %q: the manager says %q, the policy %q", name, value, closed, denied)
			}
		}
	}
}
