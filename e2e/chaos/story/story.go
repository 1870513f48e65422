package story

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror/shards"
)

// Story is one Job's.
type Story struct {
	// Name of the Job; it starts with the kind.
	Name string
	Kind string
	// At is when it's submitted, from the start of the run.
	At   time.Duration
	Job  *batchv1.Job
	Acts []Act
	End  End
}

// Act is what the user does to the Job.
type Act struct {
	// After is the time since the act before, or since the submission.
	After time.Duration
	Deed  Deed
	// Value is the parallelism to scale to. A deletion is in the foreground if it's 1.
	Value int32
}

// Propagation is how a Job is deleted.
func (a Act) Propagation() metav1.DeletionPropagation {
	if a.Value == 1 {
		return metav1.DeletePropagationForeground
	}
	return metav1.DeletePropagationBackground
}

// Deed is a kind of act.
type Deed string

// What users do.
const (
	Suspend Deed = "suspend"
	Resume  Deed = "resume"
	// Scale sets parallelism; of an elastic Job, completions, too.
	Scale        Deed = "scale"
	ScaleElastic Deed = "scale elastic"
	// Reselect has the Job go to the next worker, by its cluster selector.
	Reselect Deed = "reselect"
	Delete   Deed = "delete"
	// Replace deletes the Job and creates it again at once, under the same name.
	Replace Deed = "replace"
)

// Make makes a number of stories of all kinds, or of the given ones, spread over a time, in each of
// the namespaces in turn.
func Make(random *rand.Rand, namespaces []string, jobs int, span time.Duration, only ...string) ([]Story, error) {
	kinds, err := choose(only)
	if err != nil {
		return nil, err
	}
	stories := make([]Story, 0, jobs)
	for n := range jobs {
		k := pick(random, kinds)
		d := draft{random: random}
		s := k.write(&d)
		s.Kind, s.Name = k.name, fmt.Sprintf("%s-%04d", k.name, n)
		s.Job.Namespace, s.Job.Name = namespaces[n%len(namespaces)], s.Name
		s.At = span * time.Duration(n) / time.Duration(jobs)
		s.join(n / len(namespaces))
		stories = append(stories, s)
	}
	return stories, nil
}

// join has a tenth of the Jobs of a namespace belong to a group, three to each, but for those that
// run in several workers, or wait for a lost one: that would have the others wait. number is the
// Job's in its namespace.
func (s *Story) join(number int) {
	if trio := number / 3; trio%10 == 0 && !s.Divided() && !s.Waits() {
		s.Job.Annotations[v1alpha1.AnnotationGroup] = fmt.Sprintf("trio-%d", trio)
	}
}

// Group names the group of the Job; empty: it's in none.
func (s *Story) Group() string {
	if name := s.Job.Annotations[v1alpha1.AnnotationGroup]; name != "" {
		return s.Job.Namespace + "/" + name
	}
	return ""
}

// Has says whether the user does a deed to the Job.
func (s *Story) Has(deeds ...Deed) bool {
	for _, act := range s.Acts {
		for _, deed := range deeds {
			if act.Deed == deed {
				return true
			}
		}
	}
	return false
}

// ReplacedInBackground says whether the user deletes the Job in the background, and creates it
// again.
func (s *Story) ReplacedInBackground() bool {
	return slices.ContainsFunc(s.Acts, func(a Act) bool {
		return a.Deed == Replace && a.Propagation() == metav1.DeletePropagationBackground
	})
}

// Divided says whether the Job may run on several workers at once.
func (s *Story) Divided() bool { return shards.MayDivide(s.Job) }

// StartsOver says whether the Job starts from zero when its worker is lost: it was asked to, or has
// no fixed number of completions, so that nobody knows what is left to do.
func (s *Story) StartsOver() bool {
	return s.Job.Annotations[onClusterLost] == restart || s.Job.Spec.Completions == nil
}

// Waits says whether the Job waits for its worker when that is lost, rather than run twice.
func (s *Story) Waits() bool { return s.Job.Annotations[onClusterLost] == wait }
