package registration

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

const (
	// LabelWorkerCluster marks a registration Secret on the hub.
	LabelWorkerCluster = "jobferry.dev/worker-cluster"
	// KubeconfigKey is where the kubeconfig is in it.
	KubeconfigKey = "kubeconfig"
)

// WorkerCluster is the hub's object that holds the settings.
func (r Request) WorkerCluster() *v1alpha1.WorkerCluster {
	spec := *r.Spec.DeepCopy()
	spec.KubeconfigSecret = r.Name
	return &v1alpha1.WorkerCluster{ObjectMeta: metav1.ObjectMeta{Name: r.Name, Labels: r.Labels}, Spec: spec}
}

// Secret is the hub's object that holds the credentials.
func (r Request) Secret(kubeconfig []byte, expires time.Time) *corev1.Secret {
	labels := ourLabels()
	labels[LabelWorkerCluster] = "true"
	annotations := map[string]string{
		AnnotationToken:     r.TokenSecretName(),
		AnnotationPodAccess: strings.Join(r.PodAccess, ","),
	}
	if !expires.IsZero() {
		annotations[AnnotationDuration] = r.TokenDuration.String()
		annotations[AnnotationExpires] = expires.UTC().Format(time.RFC3339)
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: r.Name, Namespace: r.Namespace, Labels: labels, Annotations: annotations},
		Type:       corev1.SecretTypeOpaque,
		Data:       map[string][]byte{KubeconfigKey: kubeconfig},
	}
}
