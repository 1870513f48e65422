package kueue

import (
	"bytes"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

const (
	// rereadSecret is how often a Secret in Kueue's namespace is read.
	rereadSecret = time.Minute
	// yield is how long a condition that somebody else wrote is left standing.
	yield = time.Minute
)

// remote is all that is known of a MultiKueueCluster.
type remote struct {
	now     time.Time
	cluster *kueue.MultiKueueCluster
	// namespaces of Kueue and of the registration Secrets.
	kueueNamespace, namespace string
	// secret is what spec.clusterSource refers to; nil: there is none.
	secret *corev1.Secret
	// secretTrouble says why the Secret can't be read.
	secretTrouble string
	// copy is the registration Secret of the cluster's name; nil: none.
	copy *corev1.Secret
	// worker is the WorkerCluster of that name; nil: none.
	worker *v1alpha1.WorkerCluster
	// written is the condition that this process wrote last, and writtenAt when.
	written   metav1.Condition
	writtenAt time.Time
}

// registration is what is to be done about a MultiKueueCluster.
type registration struct {
	// create makes this registration Secret.
	create *corev1.Secret
	// update makes the copy what this is.
	update *corev1.Secret
	// active is to be written; nil: it's as it should be, or left alone for now.
	active *metav1.Condition
	again  time.Duration
}

// decideCluster says what is to be done about a MultiKueueCluster that a check of ours uses.
func decideCluster(r *remote) registration {
	if r.cluster.DeletionTimestamp != nil {
		return registration{} // the garbage collector deletes the copy, its owner gone
	}
	var d registration
	problem := r.problem()
	switch {
	case r.copy != nil && !r.isCopy():
		problem = nil // registered by hand
	case problem != nil || r.copy != nil && r.copy.DeletionTimestamp != nil:
	case r.copy == nil:
		d.create = r.newCopy()
	case !bytes.Equal(r.copy.Data[v1alpha1.KubeconfigKey], r.secret.Data[v1alpha1.KubeconfigKey]):
		d.update = r.copy.DeepCopy()
		d.update.Data = map[string][]byte{v1alpha1.KubeconfigKey: r.secret.Data[v1alpha1.KubeconfigKey]}
	}
	if r.isFromSecret() {
		d.again = rereadSecret
	}
	active := r.active(problem)
	if wait := r.yields(active); wait > 0 {
		d.again = wait
		return d
	}
	if shown := r.shown(); shown == nil || !alike(shown, &active) {
		d.active = &active
	}
	return d
}

func (r *remote) isFromSecret() bool {
	config := r.cluster.Spec.ClusterSource.KubeConfig
	return config != nil && config.LocationType != kueue.PathLocationType
}

// isCopy: the registration Secret is ours, and this cluster's.
func (r *remote) isCopy() bool {
	return r.copy.Annotations[v1alpha1.AnnotationMultiKueueCluster] == r.cluster.Name
}

// problem says why the cluster's source doesn't give a kubeconfig; nil: it does.
func (r *remote) problem() *metav1.Condition {
	source := r.cluster.Spec.ClusterSource
	instead := fmt.Sprintf("put the kubeconfig into a Secret in %s and let spec.clusterSource.kubeConfig name it, or register the worker %s yourself, by a Secret in %s",
		r.kueueNamespace, r.cluster.Name, r.namespace)
	switch {
	case source.ClusterProfileRef != nil:
		return inactive(v1alpha1.ReasonUnsupportedSource, "spec.clusterSource.clusterProfileRef: Jobferry doesn't read ClusterProfiles: "+instead)
	case source.KubeConfig == nil:
		return inactive(v1alpha1.ReasonUnsupportedSource, "spec.clusterSource names nothing: "+instead)
	case source.KubeConfig.LocationType == kueue.PathLocationType:
		return inactive(v1alpha1.ReasonUnsupportedSource, "spec.clusterSource.kubeConfig.locationType: Jobferry reads no files: "+instead)
	case r.secretTrouble != "":
		return inactive(v1alpha1.ReasonSecretMissing, r.secretTrouble)
	case r.secret == nil:
		return inactive(v1alpha1.ReasonSecretMissing, fmt.Sprintf("there is no Secret %s/%s, which spec.clusterSource.kubeConfig.location names",
			r.kueueNamespace, source.KubeConfig.Location))
	case len(r.secret.Data[v1alpha1.KubeconfigKey]) == 0:
		return inactive(v1alpha1.ReasonKubeconfigMissing, fmt.Sprintf("Secret %s/%s has no key %q",
			r.kueueNamespace, r.secret.Name, v1alpha1.KubeconfigKey))
	default:
		return nil
	}
}

// newCopy is the registration Secret. The cluster owns it: deleting the one deletes the other,
// which unregisters the worker.
func (r *remote) newCopy() *corev1.Secret {
	labels := maps.Clone(r.cluster.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[v1alpha1.LabelWorkerCluster] = "true"
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: r.namespace, Name: r.cluster.Name, Labels: labels,
			Annotations: map[string]string{v1alpha1.AnnotationMultiKueueCluster: r.cluster.Name},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: kueue.SchemeGroupVersion.String(), Kind: "MultiKueueCluster", Name: r.cluster.Name, UID: r.cluster.UID,
			}},
		},
		Data: map[string][]byte{v1alpha1.KubeconfigKey: r.secret.Data[v1alpha1.KubeconfigKey]},
	}
}

// active is what the cluster's condition should say.
func (r *remote) active(problem *metav1.Condition) metav1.Condition {
	if problem != nil {
		return *problem
	}
	if r.copy != nil && r.copy.DeletionTimestamp != nil {
		return *inactive(v1alpha1.ReasonRemoving, fmt.Sprintf("Secret %s/%s, the worker's registration, is being deleted; the worker is registered anew when it's gone",
			r.namespace, r.copy.Name))
	}
	var ready *metav1.Condition
	if r.worker != nil {
		ready = meta.FindStatusCondition(r.worker.Status.Conditions, v1alpha1.ConditionReady)
	}
	switch {
	case ready == nil:
		return *inactive(v1alpha1.ReasonConnecting, "the worker is being registered")
	case ready.Status != metav1.ConditionTrue:
		return *inactive(ready.Reason, fmt.Sprintf("WorkerCluster %s: %s", r.worker.Name, ready.Message))
	default:
		return metav1.Condition{Type: kueue.MultiKueueClusterActive, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonActive,
			Message: fmt.Sprintf("WorkerCluster %s is ready", r.worker.Name)}
	}
}

func inactive(reason, message string) *metav1.Condition {
	return &metav1.Condition{Type: kueue.MultiKueueClusterActive, Status: metav1.ConditionFalse, Reason: reason, Message: message}
}

func (r *remote) shown() *metav1.Condition {
	return meta.FindStatusCondition(r.cluster.Status.Conditions, kueue.MultiKueueClusterActive)
}

// yields says how long to leave a condition standing that somebody else wrote over ours a short
// while ago.
func (r *remote) yields(active metav1.Condition) time.Duration {
	shown := r.shown()
	if shown == nil || alike(shown, &active) || !alike(&r.written, &active) {
		return 0
	}
	return r.writtenAt.Add(yield).Sub(r.now)
}

func alike(a, b *metav1.Condition) bool {
	return a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message
}
