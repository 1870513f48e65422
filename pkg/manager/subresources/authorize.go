package subresources

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
)

// authorizer decides whether a user may make a request.
type authorizer interface {
	// check returns an API status error if the user may not.
	check(ctx context.Context, u user.Info, req *request) error
}

// accessReviewer asks the hub, for each request anew: a withdrawn role has effect at once.
type accessReviewer struct {
	reviews authorizationclient.SubjectAccessReviewInterface
}

func (r accessReviewer) check(ctx context.Context, u user.Info, req *request) error {
	review, err := r.reviews.Create(ctx, reviewOf(u, req), metav1.CreateOptions{})
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("the hub was asked whether this is allowed, and failed: %w", err))
	}
	if review.Status.Allowed && !review.Status.Denied {
		return nil
	}
	jobs := schema.GroupResource{Group: Group, Resource: "jobs/" + req.sub.name}
	return apierrors.NewForbidden(jobs, req.key.Name, fmt.Errorf("user %q may not %s it in namespace %q: a Role with verb %s on %s in API group %s is missing",
		u.GetName(), req.sub.verb, req.key.Namespace, req.sub.verb, jobs.Resource, Group))
}

func reviewOf(u user.Info, req *request) *authorizationv1.SubjectAccessReview {
	extra := make(map[string]authorizationv1.ExtraValue, len(u.GetExtra()))
	for key, values := range u.GetExtra() {
		extra[key] = values
	}
	return &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: u.GetName(), UID: u.GetUID(), Groups: u.GetGroups(), Extra: extra,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: req.key.Namespace, Name: req.key.Name, Verb: req.sub.verb,
			Group: Group, Version: Version, Resource: "jobs", Subresource: req.sub.name,
		},
	}}
}
