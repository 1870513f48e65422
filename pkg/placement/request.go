package placement

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/placement/preference"
)

// Request asks for a place for one Job.
type Request struct {
	// Job as it is on the hub. Its status counts: completions reached need no Pods any more.
	Job *batchv1.Job
	// Recent are the paths of the recent fields of the Job's spec, as far as they are known.
	Recent []string
	// Selector over the clusters' labels. Nil matches all.
	Selector labels.Selector
	// Preference orders the clusters: one of an earlier step that fits is chosen whatever the costs and
	// scores. Its steps open as the Job waits, Since some time. Nil: all clusters are alike.
	Preference *preference.Preference
	Since      time.Time
	// Now is the time of the decision.
	Now time.Time
	// Namespace has the labels of the Job's namespace on the hub.
	Namespace labels.Set
	// NamespaceClosed: the namespace is not dispatched, so its Jobs are placed nowhere.
	NamespaceClosed bool
	// RoomNow: only clusters in which its Pods fit without new nodes, and without that others have to go.
	RoomNow bool
	// Among restricts the Job to these clusters, in order of its queue's preference, which goes before
	// that of the Job: one that is named earlier and fits is chosen whatever the scores. Nil allows all.
	Among []string
	// PassedOver names clusters that can't take this Job, each with the reason as it will read in
	// the explanation, such as "has a Job of this name that isn't ours".
	PassedOver map[string]string
}

// ParseSelector reads the cluster selector from a Job's annotations. It is nil, which matches all
// clusters, when the annotation is absent or empty. The error is for the user's eyes.
func ParseSelector(annotations map[string]string) (labels.Selector, error) {
	value, ok := annotations[v1alpha1.AnnotationClusterSelector]
	if !ok || value == "" {
		return nil, nil
	}
	selector, err := labels.Parse(value)
	if err != nil {
		return nil, &SelectorError{Value: value, Err: err}
	}
	return selector, nil
}

// SelectorError says that a Job's cluster selector can't be read. Only an edit of the Job mends it.
type SelectorError struct {
	// Value of the annotation.
	Value string
	// Err is why it isn't a label selector.
	Err error
}

func (e *SelectorError) Error() string {
	return fmt.Sprintf("annotation %s: %q is not a label selector: %v; "+
		"set it to one such as \"region=eu,gpu in (a100,h100)\", or remove it to allow every cluster",
		v1alpha1.AnnotationClusterSelector, e.Value, e.Err)
}

func (e *SelectorError) Unwrap() error { return e.Err }
