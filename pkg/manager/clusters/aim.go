package clusters

import (
	"context"
	"crypto/sha256"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// aim is what a connection shall lead to: a kubeconfig, or the reason why there is none. It's
// replaced as a whole.
type aim struct {
	fingerprint [sha256.Size]byte
	kubeconfig  []byte
	missing     *KubeconfigError // instead of a kubeconfig

	// ctx ends when the aim is replaced: what is under way for it stops.
	ctx     context.Context
	abandon func()
}

// past is what the hub remembers of a worker from before this process.
type past struct {
	clusterUID types.UID
	// since is when the worker was first found not to be Ready, and clock the loss clock; zero if
	// it was Ready.
	since, clock time.Time
}

// aimAt makes the aim of a kubeconfig.
func aimAt(kubeconfig []byte) *aim {
	return newAim(aim{fingerprint: sha256.Sum256(kubeconfig), kubeconfig: kubeconfig})
}

// aimless is the aim where there is no kubeconfig.
func aimless(reason, problem string) *aim {
	return newAim(aim{
		fingerprint: sha256.Sum256([]byte("none: " + reason + problem)),
		missing:     &KubeconfigError{Reason: reason, Problem: problem},
	})
}

func newAim(a aim) *aim {
	a.ctx, a.abandon = context.WithCancel(context.Background())
	return &a
}

// parse reads the kubeconfig.
func (a *aim) parse() (*rest.Config, *KubeconfigError) {
	if a.missing != nil {
		return nil, a.missing
	}
	config, err := ParseKubeconfig(a.kubeconfig)
	var refusal *KubeconfigError
	switch {
	case errors.As(err, &refusal):
		return nil, refusal
	case err != nil:
		return nil, &KubeconfigError{Reason: v1alpha1.ReasonKubeconfigInvalid, Problem: err.Error()}
	}
	return config, nil
}

// equal says whether both lead to the same end.
func (a *aim) equal(other *aim) bool {
	if a == nil || other == nil {
		return a == other
	}
	return a.fingerprint == other.fingerprint
}
