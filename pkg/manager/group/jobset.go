package group

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/util/jsonscan"
	"github.com/jobferry/jobferry/pkg/util/quantities"
)

// JobSetKind is the one kind of which it's known what Jobs an object will have.
const JobSetKind = "JobSet.jobset.x-k8s.io"

// AnnotationExclusiveTopology on a Job has JobSet place it alone in a domain. JobSet's webhook for
// Pods does that, which no worker has.
const AnnotationExclusiveTopology = "alpha.jobset.sigs.k8s.io/exclusive-topology"

// JobSet is what a client reads a JobSet into: as much of it as says which Jobs it will have. The
// client asks for JSON, as there is no Go type of it here.
type JobSet struct {
	unstructured.Unstructured // the kind and name that are asked for
	UID                       types.UID
	// Bytes is how large the JobSet is that was read.
	Bytes      int64
	replicated []replicatedJob
	suspended  bool
}

type replicatedJob struct {
	Name     string                  `json:"name"`
	Replicas *int32                  `json:"replicas"`
	Template batchv1.JobTemplateSpec `json:"template"`
}

// NewJobSet makes one to read the JobSet of a group into.
func NewJobSet(of ID) *JobSet {
	s := &JobSet{}
	s.SetGroupVersionKind(schema.GroupVersionKind{Group: "jobset.x-k8s.io", Version: "v1alpha2", Kind: "JobSet"})
	s.SetNamespace(of.Namespace)
	s.SetName(of.Name)
	return s
}

// sentJobSet is what is read of a JobSet.
type sentJobSet struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		Suspend        bool            `json:"suspend"`
		ReplicatedJobs []replicatedJob `json:"replicatedJobs"`
	} `json:"spec"`
}

// maxObjects bounds how many JSON objects a JobSet has that is read: a few bytes of one may become
// a kilobyte. JobSetWeight is what a JobSet takes at most while it's read.
const (
	maxObjects   = 20_000
	JobSetWeight = 32 << 20
)

// ErrTooLarge says that a JobSet has too much in it to be read.
var ErrTooLarge = errors.New("the JobSet has too many objects in it, or a quantity with too many digits")

// UnmarshalJSON implements json.Unmarshaler. JobSet's API allows quantities that it would take very
// long to read.
func (s *JobSet) UnmarshalJSON(sent []byte) error {
	var read sentJobSet
	s.Bytes = int64(len(sent))
	objects := bytes.Count(sent, []byte("{")) + bytes.Count(sent, []byte("null")) // which becomes a struct, too
	if objects > maxObjects || quantities.HasCostlyJSON(sent, reflect.TypeOf(read)) {
		return ErrTooLarge
	}
	if err := jsonscan.Unmarshal(sent, &read); err != nil {
		return fmt.Errorf("JobSet: %w", err)
	}
	s.UID, s.replicated, s.suspended = read.Metadata.UID, read.Spec.ReplicatedJobs, read.Spec.Suspend
	return nil
}

// control has a Job be one of a part of the JobSet, suspended as it is.
func (s *JobSet) control(job *batchv1.Job, part string) {
	job.Namespace, job.Spec.Suspend = s.GetNamespace(), &s.suspended
	job.Labels = map[string]string{mirror.LabelReplicatedJob: part}
	job.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "jobset.x-k8s.io/v1alpha2", Kind: "JobSet", Name: s.GetName(), UID: s.UID, Controller: ptr.To(true),
	}}
}

// maxReplicas bounds how many Jobs of a JobSet are looked at. JobSet's own limits are lower.
const maxReplicas = 10_000

// Jobs are those that a JobSet will have, but for some.
func (s *JobSet) Jobs(but func(types.NamespacedName) bool) []Kin {
	var all []Kin
	left := maxReplicas
	for i := range s.replicated {
		r := &s.replicated[i]
		if len(r.Name) > validation.DNS1123LabelMaxLength {
			continue // no Job can have such a name, and there may be very many of them
		}
		kin := Kin{Job: &batchv1.Job{ObjectMeta: r.Template.ObjectMeta, Spec: r.Template.Spec}}
		for index := range min(max(int(ptr.Deref(r.Replicas, 1)), 0), left) {
			left--
			key := types.NamespacedName{Namespace: s.GetNamespace(), Name: fmt.Sprintf("%s-%s-%d", s.GetName(), r.Name, index)}
			if !but(key) {
				kin.Keys = append(kin.Keys, key)
			}
		}
		if len(kin.Keys) > 0 {
			s.control(kin.Job, r.Name)
			kin.Job.Name = kin.Keys[0].Name
			all = append(all, kin)
		}
	}
	return all
}
