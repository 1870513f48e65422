package preference

import (
	"fmt"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/util/selectors"
)

// ParseSelector reads the cluster selector from a Job's annotations. It is nil, which matches all
// clusters, when the annotation is absent or empty. The error is for the user's eyes.
func ParseSelector(annotations map[string]string) (labels.Selector, error) {
	value, ok := annotations[v1alpha1.AnnotationClusterSelector]
	if !ok || value == "" {
		return nil, nil
	}
	selector, err := selectors.Parse(value)
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
