package clusters

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// HubUID reads the UID of the hub's namespace kube-system, which stands for the cluster, and is its
// origin unless an admin chose another.
func HubUID(ctx context.Context, hub client.Reader) (types.UID, error) {
	var namespace corev1.Namespace
	if err := hub.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, &namespace); err != nil {
		return "", fmt.Errorf("the hub's namespace %s, whose UID is the hub's origin: %w", metav1.NamespaceSystem, err)
	}
	return namespace.UID, nil
}
