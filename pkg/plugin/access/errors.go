package access

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Advised is an error with a way out.
type Advised struct {
	Err error
	// Advice is what to do, in one sentence without a period.
	Advice string
}

// Error tells both.
func (e *Advised) Error() string { return e.Err.Error() + "\n  " + e.Advice }

// Unwrap is the error without the advice.
func (e *Advised) Unwrap() error { return e.Err }

// Advise adds a way out to an error; nil stays nil, and the first advice stays.
func Advise(err error, advice string) error {
	if already := (*Advised)(nil); err == nil || errors.As(err, &already) {
		return err
	}
	return &Advised{err, advice}
}

// advices are checked in order, the first that applies is given.
var advices = []struct {
	applies func(error) bool
	advice  string
}{
	{subresourcesMissing,
		"the hub doesn't serve subresources.jobferry.dev: install the chart with subresources.enabled=true (kubectl get apiservice v1alpha1.subresources.jobferry.dev)"},
	{managerMissing,
		"jobferry-manager doesn't answer: see kubectl get apiservice v1alpha1.subresources.jobferry.dev, and kubectl -n jobferry-system get pods"},
	{subresourceForbidden,
		"you lack that right on the hub: ask its admin for the role view (pods, logs, events) or edit (exec) in this namespace"},
	{kindMissing, "the hub has no WorkerClusters: is it the right context, and is Jobferry installed there?"},
	{apierrors.IsUnauthorized, "the cluster doesn't accept your credentials: see kubectl config current-context"},
	{apierrors.IsForbidden, "you lack that right: ask the cluster's admin"},
}

// Explain adds to an API server's error what to do about it.
func Explain(err error) error {
	for _, a := range advices {
		if err != nil && a.applies(err) {
			return Advise(err, a.advice)
		}
	}
	return err
}

// subresourcesMissing: the API server has no such path at all, which is said without naming a kind,
// or with our group's.
func subresourcesMissing(err error) bool {
	return apierrors.IsNotFound(err) && unknownPath(err) && !kindMissing(err)
}

// managerMissing: the hub's API server found nobody to pass the request on to. What the manager
// itself can't do, it says by a worker's name.
func managerMissing(err error) bool {
	return apierrors.IsServiceUnavailable(err) && !strings.HasPrefix(err.Error(), "worker ")
}

func unknownPath(err error) bool {
	return strings.Contains(err.Error(), "the server could not find the requested resource") || strings.Contains(err.Error(), "page not found")
}

func kindMissing(err error) bool {
	if meta.IsNoMatchError(err) {
		return true
	}
	status, ok := details(err)
	return ok && apierrors.IsNotFound(err) && unknownPath(err) && status.Kind == "workerclusters"
}

// subresourceForbidden: of a connection that isn't upgraded, for a command, clients keep the
// message alone.
func subresourceForbidden(err error) bool {
	if status, ok := details(err); ok {
		return apierrors.IsForbidden(err) && status.Group == SubresourcesGroupVersion.Group
	}
	return strings.Contains(err.Error(), "jobs."+SubresourcesGroupVersion.Group) && strings.Contains(err.Error(), "is forbidden")
}

func details(err error) (metav1.StatusDetails, bool) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return metav1.StatusDetails{}, false
	}
	return *status.Status().Details, true
}
