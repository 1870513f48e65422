package plan

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror/intervals"
)

// maxAnnotationBytes is what the API server allows for all annotations of an object.
const maxAnnotationBytes = 256 << 10

// shard is the part of an Indexed Job that this controller may run; see "A shard" in doc.go.
type shard struct {
	assigned intervals.Set // AnnotationIndexes, which the hub sets; empty if there's a problem
	observed intervals.Set // AnnotationIndexesObserved, as it was read
	next     string        // AnnotationIndexesObserved, as the next status write leaves it
	problem  string        // why nothing new starts, for the user's eyes
}

// IsShard reports whether the Job is a part of one that runs in several clusters, and follows the
// annotations. The mirrors that a hub makes for the built-in Job controller don't: their status
// keeps them from the indexes of others. In drop-in mode, this controller runs those, too.
func IsShard(job *batchv1.Job) bool {
	controller := ptr.Deref(job.Spec.ManagedBy, "")
	if !IsIndexed(job) || controller == "" || controller == batchv1.JobControllerName {
		return false
	}
	_, assigned := job.Annotations[v1alpha1.AnnotationIndexes]
	_, observed := job.Annotations[v1alpha1.AnnotationIndexesObserved]
	return assigned || observed
}

// readShard reads the annotations; it returns nil for a Job that is no shard.
func readShard(job *batchv1.Job) *shard {
	if !IsShard(job) {
		return nil
	}
	s := &shard{next: job.Annotations[v1alpha1.AnnotationIndexesObserved]}
	if observed, err := intervals.ParseStrict(s.next, intervals.NoLimit); err == nil {
		s.observed = observed // damaged text permits nothing, and is written anew
	}
	text, ok := job.Annotations[v1alpha1.AnnotationIndexes]
	assigned, err := intervals.ParseStrict(text, intervals.NoLimit)
	switch {
	case !ok:
		s.problem = "was removed"
	case err != nil:
		s.problem = fmt.Sprintf("can't be read: %v", err)
	default:
		s.assigned = assigned
	}
	return s
}

// observe decides what the controller takes note of: the indexes that it is assigned, and those
// that have left the shard but still have a Pod here, or may have one that isn't known.
func (f *facts) observe(unanswered intervals.Set) {
	s := f.shard
	if s.problem != "" {
		return
	}
	next := s.assigned.Union(f.held()).Union(f.unsettled(unanswered)).String()
	if size := annotationBytes(f.job, next); len(next) > len(s.next) && size > maxAnnotationBytes {
		s.problem = fmt.Sprintf("is too long to be taken note of: with %s, the annotations would have %d bytes, and may have %d",
			v1alpha1.AnnotationIndexesObserved, size, maxAnnotationBytes)
		s.assigned = nil
		return
	}
	s.next = next
}

// annotationBytes is the size of the Job's annotations with that AnnotationIndexesObserved.
func annotationBytes(job *batchv1.Job, observed string) int {
	size := len(v1alpha1.AnnotationIndexesObserved) + len(observed)
	for key, value := range job.Annotations {
		if key != v1alpha1.AnnotationIndexesObserved {
			size += len(key) + len(value)
		}
	}
	return size
}

// held are the unsettled indexes that have a Pod here: one that may still run, or isn't counted,
// or, with backoffLimitPerIndex, waits for its replacement.
func (f *facts) held() intervals.Set {
	pods := filter(f.pods, func(p *pod) bool { return !p.ended() || p.tracked })
	return f.unsettled(indexesOf(pods))
}

func (f *facts) unsettled(indexes intervals.Set) intervals.Set {
	return indexes.Minus(f.indexes.succeeded).Minus(f.indexes.failed)
}

// hasLeft reports whether the Pod's index isn't in the shard any more. The Pod runs to its end
// here.
func (f *facts) hasLeft(p *pod) bool { return f.shard != nil && !f.shard.assigned.Has(p.index) }

// mayStart are the indexes that the controller may start: those of the shard, and those that failed
// here and wait for their replacement, as far as the hub knows of it.
func (f *facts) mayStart() intervals.Set {
	all := intervals.Range(0, f.completions)
	switch s := f.shard; {
	case s == nil:
		return all
	case s.problem != "":
		return nil
	default:
		return s.assigned.Union(f.indexes.awaited()).Intersect(s.observed).Intersect(all)
	}
}

// observedAnew returns AnnotationIndexesObserved if it changes, and whether there may be new
// indexes to start once it is written.
func (f *facts) observedAnew() (text *string, more bool) {
	if f.shard == nil {
		return nil, false
	}
	was, ok := f.job.Annotations[v1alpha1.AnnotationIndexesObserved]
	if ok && was == f.shard.next || !ok && f.shard.problem != "" {
		return nil, false
	}
	return ptr.To(f.shard.next), !f.shard.assigned.SubsetOf(f.shard.observed)
}

// ShardProblem is why the controller starts nothing new of a shard, empty if it does.
func (p *Plan) ShardProblem() string {
	if p.facts.shard == nil || p.facts.shard.problem == "" {
		return ""
	}
	return fmt.Sprintf("Annotation %s %s. No Pod is started; those that run go on. "+
		"Set it to the indexes that this cluster may run, such as 0-99,150: the hub does so when it's in touch",
		v1alpha1.AnnotationIndexes, p.facts.shard.problem)
}
