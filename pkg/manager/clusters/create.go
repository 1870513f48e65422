package clusters

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// newCluster is the WorkerCluster that a Secret gets. Its spec is the admin's from then on: what
// isn't set here gets the API's defaults.
//
// It's cluster-scoped, and a namespaced owner of such an object is none to the garbage collector:
// the bond is spec.kubeconfigSecret and the finalizer on the Secret.
func newCluster(s snapshot) *v1alpha1.WorkerCluster {
	return &v1alpha1.WorkerCluster{
		ObjectMeta: metav1.ObjectMeta{Name: s.name, Labels: inheritedLabels(s.secret.Labels)},
		Spec:       v1alpha1.WorkerClusterSpec{KubeconfigSecret: s.secret.Name},
	}
}

// inheritedLabels are the Secret's labels that describe the cluster: those without a prefix, and
// Kubernetes' own topology labels. Others belong to the tools that manage the Secret, and some of
// those delete what has their label and isn't theirs.
func inheritedLabels(labels map[string]string) map[string]string {
	inherited := map[string]string{}
	for key, value := range labels {
		prefix, _, prefixed := strings.Cut(key, "/")
		if !prefixed || prefix == "topology.kubernetes.io" {
			inherited[key] = value
		}
	}
	return inherited
}
