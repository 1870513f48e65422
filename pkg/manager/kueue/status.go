package kueue

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jobferry/jobferry/pkg/util/text"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// fieldOwner is the manager's in server-side apply.
const fieldOwner = client.FieldOwner(v1alpha1.ManagedByDispatcher)

// retryConflict is the pause after a write that failed because the cache was behind.
const retryConflict = time.Second

// applyStatus applies fields of the status of one of Kueue's objects. It fails with a conflict if
// the object has changed since it was read.
func (s *session) applyStatus(ctx context.Context, read client.Object, fields any) error {
	gvk, err := s.hub.GroupVersionKindFor(read)
	if err != nil {
		return err
	}
	patch, err := statusPatch(gvk.GroupVersion().String(), gvk.Kind, read, fields)
	if err != nil {
		return err
	}
	// Of the answer only the metadata is decoded: a Workload's Pod templates may be large.
	answer := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: read.GetNamespace(), Name: read.GetName()}}
	answer.SetGroupVersionKind(gvk)
	return s.hub.Status().Patch(ctx, answer, client.RawPatch(types.ApplyPatchType, patch), fieldOwner, client.ForceOwnership)
}

func statusPatch(apiVersion, kind string, read metav1.Object, fields any) ([]byte, error) {
	return json.Marshal(map[string]any{
		"apiVersion": apiVersion, "kind": kind,
		"metadata": map[string]any{
			"namespace": read.GetNamespace(), "name": read.GetName(), "uid": read.GetUID(), "resourceVersion": read.GetResourceVersion(),
		},
		"status": fields,
	})
}

// applyCondition applies a condition if the object doesn't have it yet.
func (s *session) applyCondition(ctx context.Context, read client.Object, conditions []metav1.Condition, desired metav1.Condition) error {
	next, changed := withCondition(conditions, desired, read.GetGeneration())
	if !changed {
		return nil
	}
	return s.applyStatus(ctx, read, map[string]any{"conditions": []metav1.Condition{next}})
}

// withCondition returns the condition as it's to be written, and whether it differs from the
// present one.
func withCondition(conditions []metav1.Condition, desired metav1.Condition, generation int64) (next metav1.Condition, changed bool) {
	desired.Message, desired.ObservedGeneration = text.Clean(desired.Message, text.MaxMessage), generation
	var present []metav1.Condition
	if c := meta.FindStatusCondition(conditions, desired.Type); c != nil {
		present = append(present, *c)
	}
	changed = meta.SetStatusCondition(&present, desired)
	return present[0], changed
}

// afterWrite turns a write's error into a result: a conflict is retried soon, and what is gone
// needs no write.
func afterWrite(err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: retryConflict}, nil
	}
	return ctrl.Result{}, client.IgnoreNotFound(err)
}
