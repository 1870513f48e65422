package hostile_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// Somebody who may create Pods in Jobferry's own namespace of a worker doesn't get hold of a node.
func TestSystemNamespaceOfAWorkerIsRestricted(t *testing.T) {
	r := registrantFor(t)
	r.RunManager(soonGone)
	r.register("w2", "--namespaces", r.NS)
	job := rigtest.Job(v1alpha1.SystemNamespace, "breakout")
	ownsTheNode(job)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "breakout"}, Spec: job.Spec.Template.Spec}
	_, err := r.Cluster("w2").Client().CoreV1().Pods(v1alpha1.SystemNamespace).Create(r.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err == nil || !strings.Contains(err.Error(), `violates PodSecurity "restricted:latest"`) {
		t.Errorf("a privileged Pod: error %v", err)
	}
}
