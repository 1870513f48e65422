package access

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/util/text"
)

// advised is an error with what to do about it, in one sentence without a period.
type advised struct {
	error
	advice string
}

func (e *advised) Error() string { return e.error.Error() + "\n  " + e.advice }
func (e *advised) Unwrap() error { return e.error }

// Advise adds to an error what to do about it. nil stays nil, and the first advice stays.
func Advise(err error, advice string) error {
	if err == nil || Advised(err) {
		return err
	}
	return &advised{err, advice}
}

// Advised reports whether an error says what to do about it.
func Advised(err error) bool {
	var already *advised
	return errors.As(err, &already)
}

// NoJob says that a Job isn't there, and what to do; by default, to look elsewhere.
func NoJob(key types.NamespacedName, advice string) error {
	return Advise(fmt.Errorf("there is no Job %s in namespace %s", key.Name, key.Namespace),
		cmp.Or(advice, "kubectl jobferry jobs -A lists the Jobs of all namespaces; -n selects another one"))
}

// advices are checked in order; the first that applies is given.
var advices = []struct {
	applies func(error) bool
	advice  string
}{
	{newerThanManager,
		"the hub's jobferry-manager is older than this plugin, and can't do this: kubectl jobferry version shows both versions"},
	{newerThanCRD,
		"the CRD on the hub is older than this plugin: upgrade Jobferry there, or use the plugin of its version (kubectl jobferry version)"},
	{subresourcesMissing,
		"the hub doesn't serve subresources.jobferry.dev: install the chart with subresources.enabled=true (kubectl get apiservice v1alpha1.subresources.jobferry.dev)"},
	{managerMissing,
		"jobferry-manager doesn't answer: see kubectl get apiservice v1alpha1.subresources.jobferry.dev, and kubectl -n jobferry-system get pods"},
	{subresourceForbidden,
		"you lack that permission on the hub: ask its admin for the role view (pods, logs, events, why) or edit (exec, attach, port-forward, cp) in this namespace"},
	{NotInstalled, "the hub has no WorkerClusters: is it the right context, and is Jobferry installed there?"},
	{apierrors.IsUnauthorized, "the cluster doesn't accept your credentials: see kubectl config current-context"},
	{apierrors.IsForbidden, "you lack that permission: ask the cluster's admin"},
}

// maxMessage is how much is kept of an API server's message. Some have a text for each of many
// fields.
const maxMessage = 8 << 10

// Explain adds to an API server's error what to do about it. The server's message becomes one line:
// only the advice stands in lines of its own.
func Explain(err error) error {
	var answered *apierrors.StatusError
	if errors.As(err, &answered) {
		answered.ErrStatus.Message = text.Clean(answered.ErrStatus.Message, maxMessage)
	}
	for _, a := range advices {
		if err != nil && a.applies(err) {
			return Advise(err, a.advice)
		}
	}
	return err
}

// newerThanManager reports whether the manager itself refuses a path or a parameter that it doesn't
// know.
func newerThanManager(err error) bool {
	return strings.Contains(err.Error(), "there is nothing at \"/apis/"+groupVersion.Group) || strings.Contains(err.Error(), "unknown parameter \"")
}

// newerThanCRD reports whether an apply has a field that the hub's CRD lacks.
func newerThanCRD(err error) bool {
	return strings.Contains(err.Error(), "field not declared in schema")
}

// subresourcesMissing reports whether the API server has no such path. It then names no kind, or
// one of our group.
func subresourcesMissing(err error) bool {
	return apierrors.IsNotFound(err) && unknownPath(err) && !NotInstalled(err)
}

// managerMissing reports whether the hub's API server found no manager for the request. The errors
// of the manager itself begin with a worker's name.
func managerMissing(err error) bool {
	return apierrors.IsServiceUnavailable(err) && !strings.HasPrefix(err.Error(), "worker ")
}

func unknownPath(err error) bool {
	return strings.Contains(err.Error(), "the server could not find the requested resource") || strings.Contains(err.Error(), "page not found")
}

// NotInstalled reports whether a cluster has none of our kinds.
func NotInstalled(err error) bool {
	if meta.IsNoMatchError(err) {
		return true
	}
	status, ok := details(err)
	return ok && apierrors.IsNotFound(err) && unknownPath(err) && status.Kind == "workerclusters"
}

// subresourceForbidden reports whether the user may not read the subresource. Clients keep only the
// message of a connection that isn't upgraded, as for exec.
func subresourceForbidden(err error) bool {
	if status, ok := details(err); ok {
		return apierrors.IsForbidden(err) && status.Group == groupVersion.Group
	}
	return strings.Contains(err.Error(), "jobs."+groupVersion.Group) && strings.Contains(err.Error(), "is forbidden")
}

func details(err error) (metav1.StatusDetails, bool) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return metav1.StatusDetails{}, false
	}
	return *status.Status().Details, true
}
