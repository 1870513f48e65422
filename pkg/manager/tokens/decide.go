package tokens

import (
	"hash/fnv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/boundtoken"
)

// renewal is what is to be done about the token of a registration Secret.
type renewal struct {
	token boundtoken.Token
	// lifetime is the one to request.
	lifetime time.Duration
	// at is when to renew it.
	at time.Time
}

// decide says when the token of a registration is renewed; nil: never, it isn't ours to renew.
func decide(secret *corev1.Secret, fraction float64) *renewal {
	lifetime, err := time.ParseDuration(secret.Annotations[v1alpha1.AnnotationTokenDuration])
	if err != nil || lifetime <= 0 || secret.DeletionTimestamp != nil {
		return nil
	}
	token, ok := boundtoken.Parse(boundtoken.Of(secret.Data[v1alpha1.KubeconfigKey]))
	if !ok {
		return nil
	}
	// The lifetime that was granted may be shorter than the one that was requested.
	share := fraction * (1 + jitter(secret.Name, token)/3)
	return &renewal{token: token, lifetime: lifetime, at: token.Issued.Add(time.Duration(share * float64(token.Lifetime())))}
}

// jitter is a number from 0 to 1 that differs from token to token.
func jitter(worker string, token boundtoken.Token) float64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(worker + token.Issued.String())) // it never fails
	return float64(h.Sum32()) / (1 << 32)
}

const (
	minRetry = 10 * time.Second
	maxRetry = 10 * time.Minute
)

// retry is when to try again a renewal that has failed: the oftener, the less time is left.
func retry(token boundtoken.Token, now time.Time) time.Duration {
	return min(max(token.Expires.Sub(now)/20, minRetry), maxRetry)
}

// takes returns whether an answer of a worker is a token that can take the place of the old one.
func takes(old boundtoken.Token, answer string, now time.Time) bool {
	next, ok := boundtoken.Parse(answer)
	return ok && next.Account == old.Account && next.AccountUID == old.AccountUID && next.Expires.After(now.Add(minRetry))
}
