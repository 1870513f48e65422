package subresources_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// requesting has each Pod request so much CPU.
func requesting(cpu string) rigtest.Option {
	return func(j *batchv1.Job) {
		j.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse(cpu)}
	}
}

// claiming has each Pod use a PersistentVolumeClaim.
func claiming(name string) rigtest.Option {
	return func(j *batchv1.Job) {
		j.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
		}}}
	}
}

// explanation asks why a Job is where it is.
func (u *user) explanation(f *ferrytest.Ferry, job string) *v1alpha1.PlacementExplanation {
	u.t.Helper()
	e := &v1alpha1.PlacementExplanation{}
	u.object(f.Context(), e, f.NS, job, "why")
	return e
}

const jobsPolicy = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
    resourceRules: [{apiGroups: [batch], apiVersions: [v1], operations: [CREATE], resources: [jobs]}]
  validations: [{expression: "false", message: %[2]q}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec: {policyName: %[1]s, validationActions: [Deny]}
`

// forbidJobs has a worker refuse all Jobs of the test's namespace, with a message.
func forbidJobs(f *ferrytest.Ferry, t *testing.T, worker, message string) {
	t.Helper()
	f.NamespaceIn(worker)
	f.Apply(f.Cluster(worker), "", fmt.Sprintf(jobsPolicy, f.NS, message))
	jobs := f.Cluster(worker).Client().BatchV1().Jobs(f.NS)
	err := wait.PollUntilContextCancel(f.Context(), 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		_, err := jobs.Create(ctx, rigtest.Job(f.NS, "probe"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil, nil
	})
	if err != nil {
		t.Fatalf("the policy has no effect: %v", err)
	}
}

// Two replicas of the program: the hub's API server asks the one that doesn't lead, which has the
// one that leads explain.
func TestWhy(t *testing.T) {
	f := ferrytest.For(t)
	deleteLease(f)
	args := []string{"--leader-elect=true", "--subresources-service=" + ferrytest.SubresourcesService}
	f.StartManager(append(args, "--subresources-bind-address="+f.FreeAddress())...)
	f.Register("w1", "w2")
	f.StartManagerWithAPI(args...)
	u := login(f, t, "curious").grant(f, f.NS, "get: jobs/why")

	f.Submit("runs", ferrytest.OnWorker("w1"), rigtest.RunForever())
	f.LeaveWorker("w1")
	f.HubJobUntil("runs", rigtest.Running(1))
	placed := u.explanation(f, "runs")
	if w := placed.Workers[0]; w.Name != "w1" || !w.Placed || w.Answer != v1alpha1.PlacementFitsNow || *w.PodsNow != 1 {
		t.Errorf("%+v", placed)
	}

	f.Submit("waits", requesting("5000"))
	event := f.EventUntil("waits", "Pending", "Insufficient cpu")
	waits := u.explanation(f, "waits")
	if !strings.Contains(event, waits.Message) || len(waits.Workers) != 2 {
		t.Errorf("the event is %q, the answer %+v", event, waits)
	}
	for _, w := range waits.Workers {
		if w.Answer != v1alpha1.PlacementNever || len(w.Shortages) != 1 || w.Nodes == 0 || w.NodeReasons[0].Nodes != w.Nodes ||
			!strings.Contains(w.Message, "nodes are available: ") || !strings.Contains(w.Message, " Insufficient cpu.") {
			t.Errorf("%+v", w)
		}
	}

	f.Submit("claims", claiming("nowhere"))
	f.EventUntil("claims", "Pending", `2 never fits: persistentvolumeclaim "nowhere" not found`)
	for _, w := range u.explanation(f, "claims").Workers {
		if w.Answer != v1alpha1.PlacementNever || len(w.NodeReasons) != 1 || w.NodeReasons[0].Plugin != "VolumeBinding" ||
			w.NodeReasons[0].Nodes != w.Nodes || !strings.Contains(w.Message, `persistentvolumeclaim "nowhere" not found`) {
			t.Errorf("%+v", w)
		}
	}

	forbidJobs(f, t, "w2", "no"+strings.Repeat(" \u202e\u200bno", 100))
	f.Submit("refused", ferrytest.OnWorker("w2"))
	f.EventUntil("refused", "MirrorRefused", "")
	f.EventUntil("refused", "Pending", "")
	i := slices.IndexFunc(u.explanation(f, "refused").Workers, func(w v1alpha1.WorkerExplanation) bool {
		return w.Name == "w2" && w.Reason == "PassedOver" && strings.Contains(w.Message, "denied request") && len(w.Message) <= 512 &&
			!strings.ContainsFunc(w.Message, func(r rune) bool { return !unicode.IsPrint(r) })
	})
	if i < 0 {
		t.Errorf("%+v", u.explanation(f, "refused"))
	}

	f.Kubectl(f.Cluster("w2"), "", "delete", "validatingadmissionpolicy,validatingadmissionpolicybinding", f.NS)

	login(f, t, "stranger").grant(f, f.NS, "get: jobs/pods, jobs/log").refused(f.Context(), http.StatusForbidden,
		`cannot get resource "jobs/why"`, f.NS, "waits", "why")
	u.refused(f.Context(), http.StatusForbidden, "", f.Namespace(f.Hub), "waits", "why")
	u.refused(f.Context(), http.StatusNotFound, "not found", f.NS, "nothing", "why")
}
