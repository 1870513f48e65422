package writer

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/namespaces"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// CreateInSystem creates an object in a worker's SystemNamespace, and that namespace if there is
// none. The registration does both; a kubeconfig of another kind may allow it.
func CreateInSystem(ctx context.Context, worker client.Client, object client.Object) error {
	err := worker.Create(ctx, object)
	if !apierrors.IsNotFound(err) {
		return err
	}
	labels := namespaces.Restricted.Labels(nil)
	labels["app.kubernetes.io/managed-by"] = "jobferry"
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.SystemNamespace, Labels: labels}}
	if err := worker.Create(ctx, namespace); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("create namespace %s: %w", namespace.Name, err)
	}
	return worker.Create(ctx, object)
}
