package group

import (
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/util/objectnames"
)

// ID names a group. Its zero value is no group.
type ID struct {
	Namespace string
	// Name is the value of the annotation v1alpha1.AnnotationGroup, or the name of the object that
	// controls the Jobs.
	Name string
	// Owner is the UID of that object; empty: the group is named by the annotation.
	Owner types.UID
	// JobSet: that object is a JobSet.
	JobSet bool
}

// String is for people.
func (id ID) String() string {
	if id.Owner == "" {
		return fmt.Sprintf("group %q", id.Name)
	}
	return "the group of " + id.Name
}

// Kinds are those of the objects whose Jobs belong together, each as KIND.GROUP, such as
// JobSet.jobset.x-k8s.io.
type Kinds []string

// Validate reports a kind that can't be one.
func (k Kinds) Validate() error {
	for _, kind := range k {
		if name, group, is := strings.Cut(kind, "."); !is || name == "" || len(validation.IsDNS1123Subdomain(group)) > 0 {
			return fmt.Errorf("%q isn't KIND.GROUP, such as %s", kind, JobSetKind)
		}
	}
	return nil
}

// Check reports what a Job of a group can't ask for.
func (k Kinds) Check(job *batchv1.Job) error {
	id, err := k.Of(job)
	_, divides := job.Annotations[v1alpha1.AnnotationMaxClusters]
	domain, exclusive := job.Annotations[AnnotationExclusiveTopology]
	switch {
	case err != nil || id == ID{}:
		return err
	case divides:
		return fmt.Errorf("annotation %s: the Jobs of %s run in one worker", v1alpha1.AnnotationMaxClusters, id)
	case exclusive:
		return fmt.Errorf("annotation %s: a webhook of JobSet would place the Pods in one %.100s each, and no worker has that: remove it from the JobSet, "+
			"and give the Pods an affinity to one another, or create it in a cluster with JobSet", AnnotationExclusiveTopology, domain)
	default:
		return nil
	}
}

// Of returns the group of a hub Job; zero: it's in none. The annotation counts before the
// controller.
func (k Kinds) Of(job *batchv1.Job) (ID, error) {
	if name, named := job.Annotations[v1alpha1.AnnotationGroup]; named {
		if !objectnames.IsDNSLabel(name) {
			return ID{}, fmt.Errorf("annotation %s: %.100q isn't the name of a group: a DNS label has up to %d lowercase letters, digits and '-', "+
				"and begins and ends with a letter or digit", v1alpha1.AnnotationGroup, name, validation.DNS1123LabelMaxLength)
		}
		return ID{Namespace: job.Namespace, Name: name}, nil
	}
	owner := metav1.GetControllerOfNoCopy(job)
	if owner == nil || owner.Size() > mirror.MaxHeldOwner { // a light Job doesn't have it, either
		return ID{}, nil
	}
	for _, kind := range k {
		if isOf(kind, owner) {
			return OfOwner(job.Namespace, owner), nil
		}
	}
	return ID{}, nil
}

// OfOwner is the group of the Jobs that an object controls.
func OfOwner(namespace string, owner *metav1.OwnerReference) ID {
	return ID{Namespace: namespace, Name: owner.Name, Owner: owner.UID, JobSet: isOf(JobSetKind, owner)}
}

func isOf(kind string, owner *metav1.OwnerReference) bool {
	name, group, _ := strings.Cut(kind, ".")
	of, _, _ := strings.Cut(owner.APIVersion, "/")
	return name == owner.Kind && group == of
}
