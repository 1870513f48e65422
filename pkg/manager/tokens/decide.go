package tokens

import (
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/util/boundtoken"
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

const (
	// minLifetime is the shortest that an API server grants.
	minLifetime = 10 * time.Minute
	// maxSkew is how far a worker's clock may be from the hub's.
	maxSkew = 15 * time.Minute
	// minLeft is for how long a new token must be valid from now on, by the hub's clock.
	minLeft = time.Minute
)

// pauseAfter is the least time from one renewal to the next, whatever a worker writes into its
// tokens: no true one is due sooner.
func pauseAfter(fraction float64) time.Duration {
	return max(time.Duration(fraction*float64(minLifetime)), minRetry)
}

// refusal says why an answer of a worker can't take the place of the old token; nil: it can.
func refusal(old boundtoken.Token, answer string, now time.Time) error {
	next, ok := boundtoken.Parse(answer)
	switch {
	case !ok || next.Account != old.Account || next.AccountUID != old.AccountUID:
		return errors.New("the worker answers with something else")
	case next.Issued.Sub(now).Abs() > maxSkew || next.Expires.Before(now.Add(minLeft)):
		return fmt.Errorf("the worker answers with a token from %s to %s, but it's %s: set the clocks of the worker and the hub",
			inUTC(next.Issued), inUTC(next.Expires), inUTC(now))
	case next.Lifetime() < minLifetime:
		return fmt.Errorf("the worker answers with a token for %s, but no API server issues one for less than %s: "+
			"check what answers at the kubeconfig's server", next.Lifetime(), minLifetime)
	}
	return nil
}

func inUTC(t time.Time) string { return t.UTC().Format(time.RFC3339) }
