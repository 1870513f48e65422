package worker_test

import (
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/e2e/rig/rigtest"
)

// Where a policy forbids to delete Pods, none is lost, and none counted: the Job says why it waits,
// holds no other Job up, and goes on once it may.
func TestDeletionsRefused(t *testing.T) {
	s := begin(t)
	s.start(size(2, 2))
	pods := s.running(2)
	s.run(pods...)
	s.until(func(j *batchv1.Job) bool { return *j.Status.Ready == 2 })
	allow := s.forbid(admissionv1.Delete, "false", func() error {
		return s.Client.CoreV1().Pods(s.ns).Delete(s.Context(), pods[0].Name, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
	})
	s.patch(`{"suspend":true}`)
	s.event("FailedDelete", "Error deleting: ")
	s.Create(s.cluster, rigtest.Job(s.ns, "other", rigtest.ManagedBy("jobferry.dev/worker"), bound))
	s.JobUntil(s.cluster, s.ns, "other", active(1))
	job := s.until(active(2))
	if job.Status.Failed != 0 || *job.Status.Terminating != 0 {
		t.Errorf("status %+v", job.Status)
	}
	allow()
	s.terminateUntilGone(pods)
	job = s.until(all(rigtest.HasCondition(batchv1.JobSuspended), active(0)))
	if job.Status.Failed != 0 || job.Status.Succeeded != 0 {
		t.Errorf("status %+v", job.Status)
	}
}

// A Pod that has stopped matching, but must keep its owner, holds its Job up, as with the built-in,
// and no other. It's replaced once it's released.
func TestReleaseRefused(t *testing.T) {
	s := begin(t)
	s.start(manual)
	pod := s.running(1)[0]
	relabel := []byte(`{"metadata":{"labels":{"app":"else"}}}`)
	release := []byte(`{"metadata":{"ownerReferences":null}}`)
	allow := s.forbid(admissionv1.Update, "has(object.metadata.ownerReferences)", func() error {
		_, err := s.Client.CoreV1().Pods(s.ns).Patch(s.Context(), pod.Name, types.MergePatchType, release, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	})
	_, err := s.Client.CoreV1().Pods(s.ns).Patch(s.Context(), pod.Name, types.MergePatchType, relabel, metav1.PatchOptions{})
	s.ok(err)
	s.Create(s.cluster, rigtest.Job(s.ns, "other", rigtest.ManagedBy("jobferry.dev/worker"), bound))
	s.JobUntil(s.cluster, s.ns, "other", active(1))
	if pods := s.pods(every); len(pods) != 1 || !tracked(&pods[0]) || len(pods[0].OwnerReferences) != 1 {
		t.Errorf("%d Pods, the first %+v", len(pods), pods[0].ObjectMeta)
	}
	allow()
	s.podUntil(pod, func(p *corev1.Pod) bool { return untracked(p) && len(p.OwnerReferences) == 0 })
	next := s.anyPodUntil(func(p *corev1.Pod) bool { return p.Name != pod.Name && p.Labels["app"] == "mine" && tracked(p) })
	s.exit(0, *next)
	s.until(rigtest.Complete)
}

// forbid has a policy refuse an operation on Pods of the namespace, unless the expression holds,
// until allow is called. It's in force once the probe is refused.
func (s *scene) forbid(operation admissionv1.OperationType, unless string, probe func() error) (allow func()) {
	s.t.Helper()
	everything := admissionv1.MatchResources{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": s.ns}},
		ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{operation},
			Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
		}}},
	}
	fail, forbidden := admissionv1.Fail, metav1.StatusReasonForbidden
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: s.ns},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &everything, FailurePolicy: &fail, Validations: []admissionv1.Validation{{Expression: unless, Reason: &forbidden}},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: policy.ObjectMeta,
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: s.ns, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
	client := s.Client.AdmissionregistrationV1()
	_, err := client.ValidatingAdmissionPolicies().Create(s.Context(), policy, metav1.CreateOptions{})
	s.ok(err)
	_, err = client.ValidatingAdmissionPolicyBindings().Create(s.Context(), binding, metav1.CreateOptions{})
	s.ok(err)
	allow = func() {
		s.ok(client.ValidatingAdmissionPolicyBindings().Delete(s.Context(), s.ns, metav1.DeleteOptions{}))
		s.ok(client.ValidatingAdmissionPolicies().Delete(s.Context(), s.ns, metav1.DeleteOptions{}))
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for probe() == nil {
		select {
		case <-tick.C:
		case <-s.Context().Done():
			s.t.Fatal("the policy has no effect")
		}
	}
	return allow
}
