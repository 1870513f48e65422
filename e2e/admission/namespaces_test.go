package admission_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
)

// namespaces has users name the dispatcher where no Jobs are dispatched: it's refused at creation,
// with the way out.
func (h hub) namespaces(t *testing.T) {
	none, allowed := h.Namespace(h.Hub), h.LabelledNamespace(ferrytest.Dispatched, h.Hub)
	h.dispatch(metav1.NamespaceSystem)
	rows := map[string]struct {
		namespace, user, want string
	}{
		"without a label":           {none, "ada", "have an admin allow it: kubectl label namespace " + none + " jobferry.dev/dispatch=allowed"},
		"allowed":                   {allowed, "ada", ""},
		"enabled":                   {h.NS, "ada", ""},
		"kube-system, labelled":     {metav1.NamespaceSystem, "ada", "create the Job in another namespace"},
		"the manager's":             {ferrytest.SystemNamespace, "ada", "create the Job in another namespace"},
		"a controller of the hub's": {none, "system:serviceaccount:kube-system:cronjob-controller", "Jobferry dispatches no Jobs of namespace " + none},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			err := h.try(row.user, rigtest.Job(row.namespace, "j", ours))
			if row.want == "" && err != nil || row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)) {
				t.Errorf("error %v, want %q", err, row.want)
			}
		})
	}
	t.Run("kube-system's own Jobs stay the hub's", func(t *testing.T) {
		job, err := h.as("ada", nil).BatchV1().Jobs(metav1.NamespaceSystem).Create(h.Context(), rigtest.Job(metav1.NamespaceSystem, "j"),
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil || managedBy(job) != "" {
			t.Errorf("managedBy %q, error %v", managedBy(job), err)
		}
	})
	t.Run("a CronJob", func(t *testing.T) {
		_, err := h.Hub.Kubectl(h.Context(), `{apiVersion: batch/v1, kind: CronJob, metadata: {name: nightly}, spec: {schedule: "0 3 * * *",
  jobTemplate: {spec: {managedBy: jobferry.dev/dispatcher, template: {spec: {restartPolicy: Never, containers: [{name: main, image: x}]}}}}}}`,
			"create", "-n", none, "--dry-run=server", "-f", "-")
		if err == nil || !strings.Contains(err.Error(), "Jobferry dispatches no Jobs of namespace "+none) {
			t.Errorf("error %v", err)
		}
	})
}
