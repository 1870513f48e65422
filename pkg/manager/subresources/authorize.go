package subresources

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apiserver/pkg/authentication/user"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
)

// authorizer decides whether a request may be served.
type authorizer interface {
	// check returns an API status error if the user of the request may not make it.
	check(ctx context.Context, req *request) error
}

const (
	// maxReviews is how many reviews are in flight. The users share them.
	maxReviews = 50
	// A denial is remembered for deniedFor: who asks again and again costs the hub nothing. What is
	// allowed isn't remembered: a withdrawn role has effect at once.
	deniedFor    = 5 * time.Second
	maxDenials   = 1000
	whatIsReview = "access reviews"
)

// accessReviewer asks the hub.
type accessReviewer struct {
	reviews  authorizationclient.SubjectAccessReviewInterface
	inFlight *limiter
	denied   *cache.LRUExpireCache // of errors, by reviewKey
}

func newAccessReviewer(reviews authorizationclient.SubjectAccessReviewInterface) *accessReviewer {
	return &accessReviewer{
		reviews: reviews, inFlight: newLimiter(whatIsReview, 0, maxReviews), denied: cache.NewLRUExpireCache(maxDenials),
	}
}

func (r *accessReviewer) check(ctx context.Context, req *request) error {
	name := req.user.GetName()
	return r.review(ctx, reviewOf(req), forbidden(req), func() (func(), error) {
		return r.inFlight.acquire(name, fmt.Sprintf("user %q", name))
	})
}

// review asks the hub, unless it denied the same a moment ago. If it denies, the error is the
// denial. What acquire returns bounds the reviews in flight.
func (r *accessReviewer) review(ctx context.Context, review *authorizationv1.SubjectAccessReview, denial error, acquire func() (func(), error)) error {
	key, err := reviewKey(review)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if denial, known := r.denied.Get(key); known {
		return denial.(error) //nolint:forcetypeassert // nothing else is put there
	}
	release, err := acquire()
	if err != nil {
		return err
	}
	defer release()
	review, err = r.reviews.Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("the hub was asked whether this is allowed, and failed: %w", err))
	}
	if review.Status.Allowed && !review.Status.Denied {
		return nil
	}
	r.denied.Add(key, denial, deniedFor)
	return denial
}

func forbidden(req *request) error {
	what := schema.GroupResource{Group: Group, Resource: req.sub.resource()}
	where, role := fmt.Sprintf("in namespace %q", req.key.Namespace), "Role"
	if req.key.Namespace == "" {
		where, role = "in all namespaces", "ClusterRole"
	}
	return apierrors.NewForbidden(what, req.key.Name, fmt.Errorf("user %q may not %s it %s: a %s with verb %s on %s in API group %s is missing",
		req.user.GetName(), req.sub.verb, where, role, req.sub.verb, what.Resource, Group))
}

// reviewKey is of the same size however long the names are that a user has.
func reviewKey(review *authorizationv1.SubjectAccessReview) ([sha256.Size]byte, error) {
	content, err := json.Marshal(review.Spec)
	return sha256.Sum256(content), err
}

func reviewOf(req *request) *authorizationv1.SubjectAccessReview {
	resource, sub, _ := strings.Cut(req.sub.resource(), "/")
	return reviewFor(req.user, authorizationv1.ResourceAttributes{
		Namespace: req.key.Namespace, Name: req.key.Name, Verb: req.sub.verb,
		Group: Group, Version: Version, Resource: resource, Subresource: sub,
	})
}

func reviewFor(u user.Info, asked authorizationv1.ResourceAttributes) *authorizationv1.SubjectAccessReview {
	extra := make(map[string]authorizationv1.ExtraValue, len(u.GetExtra()))
	for key, values := range u.GetExtra() {
		extra[key] = values
	}
	return &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: u.GetName(), UID: u.GetUID(), Groups: u.GetGroups(), Extra: extra, ResourceAttributes: &asked,
	}}
}
