package registration

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// WorkerCluster returns the hub's object with the settings.
func (r Request) WorkerCluster() *v1alpha1.WorkerCluster {
	spec := *r.Spec.DeepCopy()
	spec.KubeconfigSecret = r.Name
	return &v1alpha1.WorkerCluster{ObjectMeta: metav1.ObjectMeta{Name: r.Name, Labels: r.Labels}, Spec: spec}
}

// AllNamespaces is the value of AnnotationNamespaces that stands for all.
const AllNamespaces = "*"

// Secret returns the hub's object with the credentials.
func (r Request) Secret(kubeconfig []byte) *corev1.Secret {
	labels := ourLabels()
	labels[v1alpha1.LabelWorkerCluster] = "true"
	annotations := map[string]string{
		v1alpha1.AnnotationAccount:   r.AccountName(),
		v1alpha1.AnnotationPodAccess: strings.Join(r.PodAccess, ","),
	}
	if r.AllNamespaces {
		annotations[v1alpha1.AnnotationNamespaces] = AllNamespaces
	} else {
		annotations[v1alpha1.AnnotationNamespaces] = strings.Join(r.Namespaces, ",")
	}
	if r.Origin != "" {
		annotations[v1alpha1.AnnotationHubOrigin] = string(r.Origin)
	}
	if r.Bound() {
		annotations[v1alpha1.AnnotationTokenDuration] = r.TokenDuration.String()
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: r.Name, Namespace: r.Namespace, Labels: labels, Annotations: annotations},
		Type:       corev1.SecretTypeOpaque,
		Data:       map[string][]byte{v1alpha1.KubeconfigKey: kubeconfig},
	}
}
