package shards

import (
	"fmt"
	"math"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// NoLimit is the limit of MaxClustersAll.
const NoLimit = math.MaxInt32

// MaxClusters reads on how many workers at once a Job may run: 1 without the annotation. The error
// is for the user's eyes, and says what to write; such a Job runs nowhere.
func MaxClusters(job *batchv1.Job) (int, error) {
	value, ok := job.Annotations[v1alpha1.AnnotationMaxClusters]
	if !ok {
		return 1, nil
	}
	limit := NoLimit
	if value != v1alpha1.MaxClustersAll {
		n, err := strconv.ParseUint(value, 10, 31)
		if err != nil || n == 0 {
			return 0, fmt.Errorf("annotation %s: %.64q is neither a number from 1 on nor %q",
				v1alpha1.AnnotationMaxClusters, value, v1alpha1.MaxClustersAll)
		}
		limit = int(n)
	}
	switch spec := &job.Spec; {
	case spec.Completions == nil:
		return 0, fmt.Errorf("annotation %s: a Job without spec.completions is a work queue, which only its Pods could divide; "+
			"set spec.completions, or remove the annotation", v1alpha1.AnnotationMaxClusters)
	case spec.Template.Spec.Subdomain != "":
		return 0, fmt.Errorf("annotation %s: Pods with spec.template.spec.subdomain find one another by name, in one cluster only; "+
			"remove the subdomain, or the annotation", v1alpha1.AnnotationMaxClusters)
	case spec.Scheduling != nil:
		return 0, fmt.Errorf("annotation %s: Pods with spec.scheduling are scheduled as one group, in one cluster only; "+
			"remove spec.scheduling, or the annotation", v1alpha1.AnnotationMaxClusters)
	}
	return limit, nil
}

// MayDivide reports whether a Job that is placed now is placed as shards.
func MayDivide(job *batchv1.Job) bool {
	_, asked := job.Annotations[v1alpha1.AnnotationMaxClusters]
	return asked
}
