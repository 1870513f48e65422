package kueue

import (
	"bytes"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// clusterSnapshot is all that is known of a MultiKueueCluster.
type clusterSnapshot struct {
	cluster *kueue.MultiKueueCluster
	// namespaces of Kueue and of the registration Secrets.
	kueueNamespace, namespace string
	// secret is what spec.clusterSource refers to; nil: there is none.
	secret *corev1.Secret
	// secretProblem says why the Secret can't be read.
	secretProblem string
	// registration is the registration Secret of the cluster's name; nil: there is none.
	registration *corev1.Secret
	// worker is the WorkerCluster of that name; nil: there is none.
	worker *v1alpha1.WorkerCluster
}

// clusterPlan is what is to be done about a MultiKueueCluster.
type clusterPlan struct {
	// create and update write the registration Secret.
	create, update *corev1.Secret
	// active is the desired condition; nil: it doesn't matter any more.
	active *metav1.Condition
}

// decideCluster decides about a MultiKueueCluster that a check of Jobferry uses.
func decideCluster(s *clusterSnapshot) clusterPlan {
	var p clusterPlan
	if s.cluster.DeletionTimestamp != nil {
		return p // the garbage collector deletes the registration with its owner
	}
	problem := s.problem()
	switch {
	case s.registration != nil && s.registration.Annotations[v1alpha1.AnnotationMultiKueueCluster] != s.cluster.Name:
		problem = nil // the user has registered the worker
	case problem != nil || s.registration != nil && s.registration.DeletionTimestamp != nil:
	case s.registration == nil:
		p.create = s.newRegistration()
	case !bytes.Equal(s.registration.Data[v1alpha1.KubeconfigKey], s.secret.Data[v1alpha1.KubeconfigKey]):
		p.update = s.registration.DeepCopy()
		p.update.Data = map[string][]byte{v1alpha1.KubeconfigKey: s.secret.Data[v1alpha1.KubeconfigKey]}
	}
	p.active = s.active(problem)
	return p
}

// problem says why the cluster's source doesn't give a kubeconfig; nil: it does.
func (s *clusterSnapshot) problem() *metav1.Condition {
	source := s.cluster.Spec.ClusterSource
	instead := fmt.Sprintf("put the kubeconfig into a Secret in %s and let spec.clusterSource.kubeConfig name it, or register the worker %s yourself, by a Secret in %s",
		s.kueueNamespace, s.cluster.Name, s.namespace)
	switch {
	case source.ClusterProfileRef != nil:
		return inactive(v1alpha1.ReasonUnsupportedSource, "spec.clusterSource.clusterProfileRef: Jobferry doesn't read ClusterProfiles: "+instead)
	case source.KubeConfig == nil:
		return inactive(v1alpha1.ReasonUnsupportedSource, "spec.clusterSource names nothing: "+instead)
	case source.KubeConfig.LocationType == kueue.PathLocationType:
		return inactive(v1alpha1.ReasonUnsupportedSource, "spec.clusterSource.kubeConfig.locationType: Jobferry reads no files: "+instead)
	case s.secretProblem != "":
		return inactive(v1alpha1.ReasonSecretMissing, s.secretProblem)
	// Who may write MultiKueueClusters doesn't learn which Secrets there are.
	case s.secret == nil || s.secret.Labels[v1alpha1.LabelMultiKueueKubeconfig] != "true":
		return inactive(v1alpha1.ReasonSecretMissing, fmt.Sprintf(
			"there is no Secret %[1]s/%[2]s, which spec.clusterSource.kubeConfig.location names, with the label %[3]s=true; if it is there, its owner lets Jobferry use it by: kubectl -n %[1]s label secret %[2]s %[3]s=true",
			s.kueueNamespace, source.KubeConfig.Location, v1alpha1.LabelMultiKueueKubeconfig))
	case len(s.secret.Data[v1alpha1.KubeconfigKey]) == 0:
		return inactive(v1alpha1.ReasonKubeconfigMissing, fmt.Sprintf("Secret %s/%s has no key %q",
			s.kueueNamespace, s.secret.Name, v1alpha1.KubeconfigKey))
	default:
		return nil
	}
}

// newRegistration is the registration Secret. The cluster owns it: deleting the cluster deletes the
// Secret, which unregisters the worker.
func (s *clusterSnapshot) newRegistration() *corev1.Secret {
	labels := maps.Clone(s.cluster.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[v1alpha1.LabelWorkerCluster] = "true"
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.namespace, Name: s.cluster.Name, Labels: labels,
			Annotations: map[string]string{v1alpha1.AnnotationMultiKueueCluster: s.cluster.Name},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: kueue.SchemeGroupVersion.String(), Kind: "MultiKueueCluster", Name: s.cluster.Name, UID: s.cluster.UID,
			}},
		},
		Data: map[string][]byte{v1alpha1.KubeconfigKey: s.secret.Data[v1alpha1.KubeconfigKey]},
	}
}

// active is the desired condition of the cluster.
func (s *clusterSnapshot) active(problem *metav1.Condition) *metav1.Condition {
	if problem != nil {
		return problem
	}
	if s.registration != nil && s.registration.DeletionTimestamp != nil {
		return inactive(v1alpha1.ReasonRemoving, fmt.Sprintf("Secret %s/%s, the worker's registration, is being deleted; the worker is registered anew when it's gone",
			s.namespace, s.registration.Name))
	}
	var ready *metav1.Condition
	if s.worker != nil {
		ready = meta.FindStatusCondition(s.worker.Status.Conditions, v1alpha1.ConditionReady)
	}
	switch {
	case ready == nil:
		return inactive(v1alpha1.ReasonConnecting, "the worker is being registered")
	case ready.Status != metav1.ConditionTrue:
		return inactive(ready.Reason, fmt.Sprintf("WorkerCluster %s: %s", s.worker.Name, ready.Message))
	default:
		return &metav1.Condition{Type: kueue.MultiKueueClusterActive, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonActive,
			Message: fmt.Sprintf("WorkerCluster %s is ready", s.worker.Name)}
	}
}

func inactive(reason, message string) *metav1.Condition {
	return &metav1.Condition{Type: kueue.MultiKueueClusterActive, Status: metav1.ConditionFalse, Reason: reason, Message: message}
}
