package plugin

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/plugin/access"
	"github.com/jobferry/jobferry/pkg/plugin/registration"
)

// credentials are a token, and when it expires; zero: never.
type credentials struct {
	token   string
	expires time.Time
}

// tokenTimeout is for the worker's token controller, which takes milliseconds.
const tokenTimeout = 30 * time.Second

// token gets the token that the token Secret stands for.
func (r *registrar) token(ctx context.Context) (credentials, error) {
	key := types.NamespacedName{Namespace: v1alpha1.SystemNamespace, Name: r.request.TokenSecretName()}
	if r.request.Bound() {
		return r.boundToken(ctx, key)
	}
	ctx, cancel := context.WithTimeout(ctx, tokenTimeout)
	defer cancel()
	var secret corev1.Secret
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		err := r.worker.Get(ctx, key, &secret)
		return len(secret.Data[corev1.ServiceAccountTokenKey]) > 0, err
	})
	if canceled(err) {
		return credentials{}, access.Advise(fmt.Errorf("worker: no token was put into Secret %s", key),
			"its token controller may be off: use a bound token, --token-duration 720h")
	}
	if err != nil {
		return credentials{}, fmt.Errorf("worker: read Secret %s: %w", key, access.Explain(err))
	}
	return credentials{token: string(secret.Data[corev1.ServiceAccountTokenKey])}, nil
}

// boundToken asks for a token that ends with its time, or with its Secret.
func (r *registrar) boundToken(ctx context.Context, key types.NamespacedName) (credentials, error) {
	var secret corev1.Secret
	if err := r.worker.Get(ctx, key, &secret); err != nil {
		return credentials{}, fmt.Errorf("worker: read Secret %s: %w", key, access.Explain(err))
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		BoundObjectRef:    &authenticationv1.BoundObjectReference{Kind: "Secret", APIVersion: "v1", Name: secret.Name, UID: secret.UID},
		ExpirationSeconds: ptr.To(int64(r.request.TokenDuration.Seconds())),
	}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: v1alpha1.SystemNamespace, Name: registration.BaseName(r.request.HubUID),
	}}
	if err := r.worker.SubResource("token").Create(ctx, account, request); err != nil {
		return credentials{}, fmt.Errorf("worker: token for ServiceAccount %s: %w", client.ObjectKeyFromObject(account), access.Explain(err))
	}
	return credentials{request.Status.Token, request.Status.ExpirationTimestamp.Time}, nil
}
