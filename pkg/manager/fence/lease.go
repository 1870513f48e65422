package fence

import (
	"encoding/json"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// holder is what the Lease's holderIdentity says.
const holder = "jobferry-manager"

// lease is the Lease as the hub wants it now.
func lease(o Options, lostTimeout time.Duration, now time.Time) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: v1alpha1.SystemNamespace, Name: o.Origin.FenceLease(),
			Labels:      map[string]string{v1alpha1.LabelOrigin: string(o.Origin)},
			Annotations: map[string]string{v1alpha1.AnnotationWorkerLostTimeout: lostTimeout.String()},
		},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity:       ptr.To(holder),
			LeaseDurationSeconds: ptr.To(int32(o.Duration / time.Second)), //nolint:gosec // seconds
			RenewTime:            &metav1.MicroTime{Time: now},
		},
	}
}

// renewal is the merge patch that makes a Lease say what this one does. What the worker has written
// into it stays.
func renewal(l *coordinationv1.Lease) ([]byte, error) {
	return json.Marshal(map[string]any{
		"metadata": map[string]any{"labels": l.Labels, "annotations": l.Annotations},
		"spec":     l.Spec,
	})
}
