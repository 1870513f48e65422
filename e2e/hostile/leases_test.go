package hostile_test

import (
	"context"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager"
)

// Somebody with a worker's kubeconfig wants to stop the Job controller there, or to have it forget
// another hub. He may write the two Leases of his hub, and no other, whatever origin the hub has.
func TestThiefCanWriteHisHubsLeases(t *testing.T) {
	r := registrantFor(t)
	r.RunManager(func(o *manager.Options) { o.Origin = "worker" })
	r.register("w1", "--all-namespaces", "--job-controller", "Embedded", "--origin", "worker")
	admin := r.Cluster("w1").Client().CoordinationV1().Leases(v1alpha1.SystemNamespace)
	stolen := r.thief("w1").CoordinationV1().Leases(v1alpha1.SystemNamespace)
	ctx := r.Context()

	others := []string{"jobferry-worker", v1alpha1.Origin("another").FenceLease(), v1alpha1.Origin("another").WriterLease()}
	for _, name := range others {
		_, err := admin.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		r.ok(err)
		t.Cleanup(func() { r.ok(admin.Delete(context.Background(), name, metav1.DeleteOptions{})) })
	}
	steal := []byte(`{"spec":{"holderIdentity":"thief","leaseDurationSeconds":100000000}}`)
	tries := map[string]func() error{
		"create": func() error {
			_, err := stolen.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "jobferry-any"}}, metav1.CreateOptions{})
			return err
		},
		"delete all": func() error {
			return stolen.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
		},
		"delete its own": func() error {
			return stolen.Delete(ctx, v1alpha1.Origin("worker").FenceLease(), metav1.DeleteOptions{})
		},
		"delete the writer's": func() error {
			return stolen.Delete(ctx, v1alpha1.Origin("worker").WriterLease(), metav1.DeleteOptions{})
		},
	}
	for _, name := range others {
		tries["patch "+name] = func() error {
			_, err := stolen.Patch(ctx, name, types.MergePatchType, steal, metav1.PatchOptions{})
			return err
		}
		tries["update "+name] = func() error {
			_, err := stolen.Update(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.UpdateOptions{})
			return err
		}
		tries["delete "+name] = func() error { return stolen.Delete(ctx, name, metav1.DeleteOptions{}) }
	}
	forbidden(t, tries)
	if _, err := stolen.Patch(ctx, v1alpha1.Origin("worker").FenceLease(), types.MergePatchType, []byte(`{}`), metav1.PatchOptions{}); err != nil {
		t.Errorf("the hub's own Lease: %v", err)
	}
}
