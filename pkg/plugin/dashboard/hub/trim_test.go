package hub

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/jobview/jobviewtest"
	"github.com/jobferry/jobferry/pkg/plugin/dashboard/view"
)

// Whatever is large in a tenant's Jobs and events, little is kept of it.
func TestLittleIsKeptOfLargeObjects(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	job := theJob()
	job.Labels, job.Finalizers, job.OwnerReferences = map[string]string{}, []string{long}, []metav1.OwnerReference{{Name: long}}
	for i := range 20_000 {
		job.Labels[fmt.Sprint("label-", i)] = "x"
	}
	job.Annotations["notes"], job.Annotations[v1alpha1.AnnotationClusterSelector] = long, "a in ("+long+")"
	job.Spec.SuccessPolicy = &batchv1.SuccessPolicy{Rules: []batchv1.SuccessPolicyRule{{SucceededIndexes: &long}}}
	job.Status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{Failed: []types.UID{types.UID(long)}}
	kept, err := trimJob(job)
	if err != nil {
		t.Fatal(err)
	}
	if is := kept.(*batchv1.Job); is.Size() > 2<<10 || is.Annotations[v1alpha1.AnnotationOnClusterLost] != "Wait" {
		t.Errorf("%d bytes are kept of a Job", is.Size())
	}
	usual := corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "team-a", Name: "e", CreationTimestamp: metav1.Now()},
		InvolvedObject: corev1.ObjectReference{Kind: "Job", Namespace: "team-a", Name: "pi", UID: "1"},
		Reason:         "Pending", Message: strings.Repeat("x", 1000), ReportingController: v1alpha1.EventController,
	}
	for name, row := range map[string]struct {
		edit  func(*corev1.Event)
		shown bool
	}{
		"usual":          {func(*corev1.Event) {}, true},
		"a long message": {func(e *corev1.Event) { e.Message = long }, true},
		"a long reason":  {func(e *corev1.Event) { e.Reason = long }, false},
		"a long UID":     {func(e *corev1.Event) { e.InvolvedObject.UID = types.UID(long) }, false},
		"a long writer":  {func(e *corev1.Event) { e.ReportingController = long }, false},
	} {
		e := usual.DeepCopy()
		row.edit(e)
		if is := trimEvent(e); is.Size() > 2<<10 || (is != nil) != row.shown {
			t.Errorf("%s: %d bytes are kept", name, is.Size())
		}
	}
}

// The page of a Job is made from all that it shows.
func TestThePageLacksNothingThatIsTrimmed(t *testing.T) {
	jobs := jobviewtest.Jobs()
	divided := theJob()
	divided.CreationTimestamp = metav1.NewTime(jobviewtest.Noon)
	divided.Labels = map[string]string{"kueue.x-k8s.io/queue-name": "main"}
	for _, key := range []string{
		v1alpha1.AnnotationClusterSelector, v1alpha1.AnnotationClusterPreference, v1alpha1.AnnotationOnClusterLost, v1alpha1.AnnotationMaxClusters,
	} {
		divided.Annotations[key] = "of " + key
	}
	divided.Spec.CompletionMode, divided.Spec.Completions, divided.Spec.Parallelism = ptr.To(batchv1.IndexedCompletion), ptr.To[int32](10), ptr.To[int32](4)
	divided.Spec.Suspend, divided.Spec.BackoffLimitPerIndex = ptr.To(false), ptr.To[int32](1)
	divided.Status.CompletedIndexes, divided.Status.FailedIndexes, divided.Status.Succeeded = "0-2", ptr.To("7"), 3
	hubstate.Set(divided, hubstate.Changes{hubstate.ShardsState: "{}", hubstate.Shards: "south=0-4;west=5-9"})
	for _, job := range append(jobs, jobviewtest.Job{Name: "divided", Job: divided}) {
		trimmed, err := trimJob(job.Job)
		if err != nil {
			t.Fatal(err)
		}
		page := func(job *batchv1.Job) view.JobPage {
			return view.NewJobPage(view.JobInput{Job: job, Workers: jobviewtest.Workers()}, jobviewtest.Noon.Add(time.Hour))
		}
		if got, want := page(trimmed.(*batchv1.Job)), page(job.Job); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got\n%+v, want\n%+v", job.Name, got, want)
		}
	}
}
