package link

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"

	"github.com/jobferry/jobferry/pkg/util/objectnames"
	"github.com/jobferry/jobferry/pkg/util/revision"
	"github.com/jobferry/jobferry/pkg/util/text"
)

// maxVersion is how many bytes a cluster's version may have.
const maxVersion = 64

// identity is what a cluster says that it is.
type identity struct {
	uid     types.UID
	version string // empty if it wasn't asked for
	// revision is the resourceVersion of the cluster's state, as a consistent read shows it; empty if
	// that wasn't answered.
	revision string
}

// probe gets the identity, or fails within the timeout. The kube-system namespace shows that
// network, TLS, authentication, authorization and etcd work, as other requests need them; /readyz
// would show less. It also shows when another cluster answers at the same address.
func (l *Link) probe(ctx context.Context, withVersion bool) (identity, error) {
	ctx, cancel := context.WithTimeout(ctx, l.options.ProbeTimeout)
	defer cancel()
	ctx, release := l.Hold(ctx)
	defer release()
	start := time.Now()
	defer func() { l.meter.probe(time.Since(start)) }()

	var system corev1.Namespace
	err := l.probes.Get().Resource("namespaces").Name(metav1.NamespaceSystem).MaxRetries(0).Do(ctx).Into(&system)
	if err == nil && len(system.UID) > objectnames.MaxUID {
		err = fmt.Errorf("the UID of its namespace %s has %d characters, and no API server makes more than %d", metav1.NamespaceSystem, len(system.UID), objectnames.MaxUID)
	}
	if err != nil {
		return identity{}, err
	}
	found := identity{uid: system.UID, revision: l.revisionNow(ctx)}
	if !withVersion {
		return found, nil
	}
	raw, err := l.probes.Get().AbsPath("/version").MaxRetries(0).Do(ctx).Raw()
	if err != nil {
		return identity{}, err
	}
	var info version.Info
	if err := json.Unmarshal(raw, &info); err != nil {
		return identity{}, fmt.Errorf("read the API server's version: %w", err)
	}
	found.version = text.Clean(info.GitVersion, maxVersion)
	return found, nil
}

// revisionNow reads the resourceVersion of the cluster's state, as package revision does.
func (l *Link) revisionNow(ctx context.Context) string {
	var none batchv1.JobList
	err := l.revisions.Get().Namespace(revision.Namespace).Resource("jobs").
		VersionedParams(&metav1.ListOptions{FieldSelector: revision.Selector().String()}, metav1.ParameterCodec).
		MaxRetries(0).Do(ctx).Into(&none)
	if err != nil || len(none.ResourceVersion) > maxVersion { // it's remembered
		return "" // whether Jobs can be listed, their watch finds out
	}
	return none.ResourceVersion
}
