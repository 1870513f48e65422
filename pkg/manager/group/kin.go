package group

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/placement"
	"github.com/jobferry/jobferry/pkg/util/digest"
)

// Kin are Jobs of a group that are alike.
type Kin struct {
	// Keys are their names.
	Keys []types.NamespacedName
	// Job is one of them.
	Job *batchv1.Job
}

// Kinship gathers Jobs of a group by what their Pods are. Its zero value has none.
type Kinship struct {
	// whole is about what those take that are kept whole.
	whole   int64
	kin     []Kin
	byAsked map[digest.Digest]int
}

// maxWhole bounds what is kept of the Jobs of one group, in bytes: their tenant makes many that
// ask. Of others there is what their Pods request.
const maxWhole = 1 << 20

// Add adds some Jobs that are alike, of the size that one takes as it's decoded.
func (k *Kinship) Add(job *batchv1.Job, size int64, keys ...types.NamespacedName) {
	if k.byAsked == nil {
		k.byAsked = map[digest.Digest]int{}
	}
	asked := askedOf(job)
	i, known := k.byAsked[asked]
	if !known {
		i = len(k.kin)
		k.byAsked[asked] = i
		if k.whole+size > maxWhole {
			job = byResources(job)
		} else {
			k.whole += size
		}
		k.kin = append(k.kin, Kin{Job: job})
	}
	k.kin[i].Keys = append(k.kin[i].Keys, keys...)
}

// byResources is a Job that wants as many Pods, in the same workers, and has of these what they
// request.
func byResources(job *batchv1.Job) *batchv1.Job {
	light := &batchv1.Job{Spec: batchv1.JobSpec{Parallelism: ptr.To(int32(placement.PodsWanted(job)))}} //nolint:gosec // it was one
	light.Namespace, light.Name, light.UID, light.Annotations = job.Namespace, job.Name, job.UID, map[string]string{}
	for _, key := range []string{v1alpha1.AnnotationClusterSelector, v1alpha1.AnnotationClusterPreference} {
		if value, is := job.Annotations[key]; is {
			light.Annotations[key] = value
		}
	}
	light.Spec.Template = placement.ByResources(&job.Spec.Template)
	return light
}

// Sorted are the same whatever the order in which they were added.
func (k *Kinship) Sorted() []Kin {
	for i := range k.kin {
		slices.SortFunc(k.kin[i].Keys, func(a, b types.NamespacedName) int { return strings.Compare(a.Name, b.Name) })
	}
	slices.SortFunc(k.kin, func(a, b Kin) int { return strings.Compare(a.Keys[0].Name, b.Keys[0].Name) })
	return k.kin
}

// askedOf is equal of Jobs that ask for the same workers, and for as many Pods that are alike, but
// for the labels that tell Jobs apart.
func askedOf(job *batchv1.Job) digest.Digest {
	labels := maps.Clone(job.Spec.Template.Labels)
	maps.DeleteFunc(labels, func(key, _ string) bool { return isOfOneJob(key) })
	spec, err := job.Spec.Template.Spec.Marshal()
	if err != nil { // it never fails
		spec = []byte(err.Error())
	}
	return digest.Of(fmt.Sprint(placement.PodsWanted(job), labels, job.Annotations[v1alpha1.AnnotationClusterSelector], "\n",
		job.Annotations[v1alpha1.AnnotationClusterPreference], "\n", string(spec)))
}

// isOfOneJob reports whether the label of a key tells Jobs apart that are made from one template.
func isOfOneJob(key string) bool {
	return strings.HasPrefix(key, "jobset.sigs.k8s.io/") || strings.HasPrefix(key, "batch.kubernetes.io/") || key == "job-name" || key == "controller-uid"
}
