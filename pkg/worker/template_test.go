package worker

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// newerServer is an API server whose Jobs and Pods have fields that the types don't know.
type newerServer struct {
	client.WithWatch
	generation int64 // of the Job as it is read
	pods       []map[string]any
	reads      int
}

func (s *newerServer) Get(ctx context.Context, key client.ObjectKey, into client.Object, o ...client.GetOption) error {
	if err := s.WithWatch.Get(ctx, key, into, o...); err != nil {
		return err
	}
	job, ok := into.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	s.reads++
	job.SetGeneration(s.generation)
	containers, _, err := unstructured.NestedSlice(job.Object, "spec", "template", "spec", "containers")
	if err != nil {
		return err
	}
	containers[0].(map[string]any)["future"] = "of a container"
	if err := unstructured.SetNestedSlice(job.Object, containers, "spec", "template", "spec", "containers"); err != nil {
		return err
	}
	return unstructured.SetNestedField(job.Object, "of the Pod", "spec", "template", "spec", "future")
}

// useNewerServer has the controller of Jobs work with such an API server.
func (c *cluster) useNewerServer(generation int64) *newerServer {
	s := &newerServer{WithWatch: c.api, generation: generation}
	inner := c.jobs.client.(client.WithWatch)
	c.jobs.live = s
	c.jobs.client = interceptor.NewClient(inner, interceptor.Funcs{
		Create: func(ctx context.Context, w client.WithWatch, obj client.Object, o ...client.CreateOption) error {
			if sent, ok := obj.(*unstructured.Unstructured); ok {
				s.pods = append(s.pods, runtime.DeepCopyJSON(sent.Object))
			}
			return w.Create(ctx, obj, o...)
		},
	})
	return s
}

// recorded gives a Job the record of a mirror with recent fields.
func recorded(job *batchv1.Job, paths string) *batchv1.Job {
	job.Annotations = map[string]string{v1alpha1.AnnotationProjected: `{"scheduling":"x","resources":"x","recent":{` + paths + `}}`}
	return job
}

// TestPodsHaveTheRecentFieldsOfTheTemplate, beside what the controller adds.
func TestPodsHaveTheRecentFieldsOfTheTemplate(t *testing.T) {
	job := recorded(aJob(func(j *batchv1.Job) { j.Spec.CompletionMode = ptr.To(batchv1.IndexedCompletion) }), `"spec.template.spec.future":"1"`)
	c := newCluster(t, Options{}, job)
	s := c.useNewerServer(job.Generation)
	c.mustSync()
	if len(s.pods) == 0 || s.reads != 1 {
		t.Fatalf("%d Pods were sent with all fields, the Job was read %d times", len(s.pods), s.reads)
	}
	for _, pod := range s.pods {
		spec := pod["spec"].(map[string]any)
		container := spec["containers"].([]any)[0].(map[string]any)
		if diff := cmp.Diff([]any{"of the Pod", "of a container"}, []any{spec["future"], container["future"]}); diff != "" {
			t.Error(diff)
		}
		var typed corev1.Pod
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(pod, &typed); err != nil {
			t.Fatal(err)
		}
		if env := typed.Spec.Containers[0].Env; len(env) != 1 || env[0].Name != "JOB_COMPLETION_INDEX" || len(typed.OwnerReferences) != 1 {
			t.Errorf("env %v, owners %v", env, typed.OwnerReferences)
		}
	}
	if n := len(c.pods()); n != len(s.pods) {
		t.Errorf("%d Pods, of which %d were sent with all fields", n, len(s.pods))
	}
}

// TestATemplateThatChangesMeanwhile: no Pod is made of another spec than the sync saw.
func TestATemplateThatChangesMeanwhile(t *testing.T) {
	job := recorded(aJob(), `"spec.template.spec.future":"1"`)
	c := newCluster(t, Options{}, job)
	s := c.useNewerServer(job.Generation + 1)
	if result, err := c.sync(); err != nil && !apierrors.IsConflict(err) || result.RequeueAfter == 0 {
		t.Errorf("got %v, %v", result, err)
	}
	if len(s.pods) > 0 || len(c.pods()) > 0 {
		t.Errorf("%d Pods were created", len(c.pods()))
	}
}

// TestOtherJobsAreNotReadAgain: a Job without a record of a hub, or with recent fields elsewhere.
func TestOtherJobsAreNotReadAgain(t *testing.T) {
	for name, job := range map[string]*batchv1.Job{
		"plain":     aJob(),
		"elsewhere": recorded(aJob(), `"spec.future":"1"`),
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, Options{}, job)
			s := c.useNewerServer(job.Generation)
			c.mustSync()
			if s.reads > 0 || len(s.pods) > 0 || len(c.pods()) == 0 {
				t.Errorf("%d reads, %d of %d Pods", s.reads, len(s.pods), len(c.pods()))
			}
		})
	}
}

// TestTemplatesAreReadOneAtATime: whatever else a Job has becomes maps, too. Those of others come
// in turn, and keep no goroutine waiting.
func TestTemplatesAreReadOneAtATime(t *testing.T) {
	job := recorded(aJob(), `"spec.template.spec.future":"1"`)
	c := newCluster(t, Options{}, job)
	s, reads := c.useNewerServer(job.Generation), 0
	other := types.NamespacedName{Namespace: "others", Name: "job"}
	c.jobs.live = interceptor.NewClient(s, interceptor.Funcs{
		Get: func(ctx context.Context, w client.WithWatch, key client.ObjectKey, into client.Object, o ...client.GetOption) error {
			if _, asMaps := into.(*unstructured.Unstructured); asMaps {
				if reads++; c.jobs.templates.Take(other) {
					t.Error("another one could be read at the same time")
				}
			}
			return w.Get(ctx, key, into, o...)
		},
	})
	if !c.jobs.templates.Take(other) {
		t.Fatal("a template is read already")
	}
	if c.mustSync(); reads != 0 || len(c.turns) != 0 {
		t.Errorf("beside another one: %d reads, enqueued %v", reads, c.turns)
	}
	if c.jobs.templates.Ended(other); !slices.Equal(c.turns, []types.NamespacedName{jobKey}) {
		t.Errorf("after the other one: enqueued %v", c.turns)
	}
	if c.mustSync(); reads != 1 || len(s.pods) == 0 {
		t.Errorf("%d reads, %d Pods", reads, len(s.pods))
	}
	if !slices.Equal(c.turns, []types.NamespacedName{jobKey, other}) {
		t.Errorf("the next one isn't enqueued: %v", c.turns)
	}
}
