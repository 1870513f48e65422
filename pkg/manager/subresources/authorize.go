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

// rights says whether a user may make a call.
type rights interface {
	// check answers with an API status error if not.
	check(ctx context.Context, u user.Info, c *call) error
}

// reviewer asks the hub, for each call anew: a role that is taken away counts at once.
type reviewer struct {
	reviews authorizationclient.SubjectAccessReviewInterface
}

func (r reviewer) check(ctx context.Context, u user.Info, c *call) error {
	review, err := r.reviews.Create(ctx, reviewOf(u, c), metav1.CreateOptions{})
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("the hub was asked whether this is allowed, and failed: %w", err))
	}
	if review.Status.Allowed && !review.Status.Denied {
		return nil
	}
	jobs := schema.GroupResource{Group: Group, Resource: "jobs/" + c.sub.name}
	return apierrors.NewForbidden(jobs, c.key.Name, fmt.Errorf("user %q may not %s it in namespace %q: a Role with verb %s on %s in API group %s is missing",
		u.GetName(), c.sub.verb, c.key.Namespace, c.sub.verb, jobs.Resource, Group))
}

func reviewOf(u user.Info, c *call) *authorizationv1.SubjectAccessReview {
	extra := make(map[string]authorizationv1.ExtraValue, len(u.GetExtra()))
	for key, values := range u.GetExtra() {
		extra[key] = values
	}
	return &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: u.GetName(), UID: u.GetUID(), Groups: u.GetGroups(), Extra: extra,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: c.key.Namespace, Name: c.key.Name, Verb: c.sub.verb,
			Group: Group, Version: Version, Resource: "jobs", Subresource: c.sub.name,
		},
	}}
}
