package clusters

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	batchclient "k8s.io/client-go/kubernetes/typed/batch/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/manager/clusters/clustertest"
)

// TestSimulatedWorkerAnswersAsARealOne tells one story to both, and compares the answers.
func TestSimulatedWorkerAnswersAsARealOne(t *testing.T) {
	f := rigtest.For(t)
	server := clustertest.NewServer(func() {})
	t.Cleanup(server.Close)
	for _, content := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
		t.Run(content, func(t *testing.T) {
			namespace := "simulated-" + content[strings.LastIndexAny(content, "./")+1:]
			simulated := server.Add(namespace, types.UID(namespace), "token")
			is := tell(t, f.Context(), simulated.RESTConfig(), content, namespace)
			want := tell(t, f.Context(), f.Cluster("w2").RESTConfig(), content, namespace)
			for i := range max(len(is), len(want)) {
				if i >= len(is) || i >= len(want) || is[i] != want[i] {
					t.Fatalf("line %d is another:\nsimulated:\n%s\nreal:\n%s", i+1, strings.Join(is, "\n"), strings.Join(want, "\n"))
				}
			}
			t.Log(strings.Join(is, "\n"))
		})
	}
}

// story notes what an API server answers, without what differs between any two.
type story struct {
	ctx  context.Context
	jobs batchclient.JobInterface
	all  []string
}

func tell(t *testing.T, ctx context.Context, config *rest.Config, content, namespace string) []string {
	t.Helper()
	config.ContentType, config.AcceptContentTypes = content, content
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	s := &story{ctx: ctx, jobs: client.BatchV1().Jobs(namespace)}
	s.create("early", nil)
	_, err = client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	s.note("namespace", nil, err)
	initial := s.watch(metav1.ListOptions{
		LabelSelector: "of=story", AllowWatchBookmarks: true, SendInitialEvents: ptr.To(true),
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	})
	s.events(initial, 1)
	begin := s.create("a", map[string]string{"of": "story"})
	s.create("a", nil)
	s.create("b", map[string]string{"of": "story"})
	s.create("c", nil)
	s.writes(begin.UID)
	s.lists()
	s.deletes(begin.UID)
	s.note("the watch from the begin", nil, nil)
	s.events(initial, 9)
	s.note("a watch from the first Job on", nil, nil)
	s.events(s.watch(metav1.ListOptions{LabelSelector: "of=story", ResourceVersion: begin.ResourceVersion}), 8)
	s.note("a watch of what there is", nil, nil)
	s.events(s.watch(metav1.ListOptions{}), 1)
	return s.all
}

// writes changes Job a, b by its labels.
func (s *story) writes(uid types.UID) {
	s.patch("a", types.MergePatchType, `{"spec":{"parallelism":3}}`)
	s.patch("a", types.MergePatchType, `{"spec":{"parallelism":3}}`)
	s.patch("a", types.MergePatchType, `{"metadata":{"annotations":{"x":"y"}},"status":{"active":5}}`)
	s.patch("a", types.MergePatchType, `{"metadata":{"annotations":{"x":"z"}},"spec":{"parallelism":4},"status":{"active":2}}`, "status")
	s.patch("a", types.MergePatchType, `{"metadata":{"uid":"another"}}`)
	s.patch("a", types.MergePatchType, `{"metadata":{"resourceVersion":"1"}}`)
	s.patch("a", types.MergePatchType, fmt.Sprintf(`{"metadata":{"uid":%q,"labels":{"more":"yes"}}}`, uid))
	s.patch("a", types.JSONPatchType, `[{"op":"test","path":"/spec/parallelism","value":9},{"op":"replace","path":"/spec/parallelism","value":1}]`)
	s.patch("a", types.JSONPatchType, `[{"op":"test","path":"/spec/parallelism","value":3},{"op":"replace","path":"/spec/parallelism","value":1}]`)
	s.patch("none", types.MergePatchType, `{"spec":{"parallelism":3}}`)
	s.patch("b", types.MergePatchType, `{"metadata":{"labels":{"of":"nothing"}}}`)
}

func (s *story) lists() {
	for _, o := range []metav1.ListOptions{{}, {LabelSelector: "of=story"}, {FieldSelector: "metadata.name=c"}, {Limit: 2}} {
		list, err := s.jobs.List(s.ctx, o)
		for i := range list.Items {
			s.note("listed", &list.Items[i], err)
		}
		if list.Continue != "" {
			rest, err := s.jobs.List(s.ctx, metav1.ListOptions{Limit: 2, Continue: list.Continue})
			for i := range rest.Items {
				s.note("continued", &rest.Items[i], err)
			}
			s.all = append(s.all, fmt.Sprintf("of one version: %t, more: %t", rest.ResourceVersion == list.ResourceVersion, rest.Continue != ""))
		}
	}
	_, err := s.jobs.Get(s.ctx, "none", metav1.GetOptions{})
	s.note("none", nil, err)
}

func (s *story) deletes(uid types.UID) {
	background := metav1.DeletePropagationBackground
	s.delete("a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: ptr.To(types.UID("another"))}})
	s.patch("a", types.MergePatchType, `{"metadata":{"finalizers":["example.org/wait"]}}`)
	s.delete("a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &background})
	s.patch("a", types.MergePatchType, `{"metadata":{"finalizers":null}}`)
	s.delete("a", metav1.DeleteOptions{})
	s.delete("b", metav1.DeleteOptions{PropagationPolicy: &background})
}

func (s *story) create(name string, labels map[string]string) *batchv1.Job {
	job, err := s.jobs.Create(s.ctx, &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: batchv1.JobSpec{
			ManagedBy: ptr.To("example.org/nobody"), Parallelism: ptr.To(int32(1)),
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "example.org/main:1"}},
			}},
		},
		Status: batchv1.JobStatus{Active: 7},
	}, metav1.CreateOptions{})
	s.note("create "+name, job, err)
	return job
}

func (s *story) patch(name string, of types.PatchType, patch string, subresources ...string) {
	job, err := s.jobs.Patch(s.ctx, name, of, []byte(patch), metav1.PatchOptions{}, subresources...)
	s.note("patch "+name+" "+strings.Join(subresources, ""), job, err)
}

func (s *story) delete(name string, options metav1.DeleteOptions) {
	s.note("delete "+name, nil, s.jobs.Delete(s.ctx, name, options))
}

func (s *story) watch(options metav1.ListOptions) watch.Interface {
	w, err := s.jobs.Watch(s.ctx, options)
	if err != nil {
		s.note("watch", nil, err)
		w = watch.NewEmptyWatch()
	}
	return w
}

// events notes the next n events of a watch, without the bookmarks that come by the clock.
func (s *story) events(w watch.Interface, n int) {
	for n > 0 {
		event, open := <-w.ResultChan()
		if !open {
			s.note("the watch ended", nil, nil)
			return
		}
		if event.Type == watch.Bookmark && !initialEventsEnd(event.Object) {
			continue
		}
		n--
		job, is := event.Object.(*batchv1.Job)
		if !is {
			s.note(fmt.Sprintf("%s %T", event.Type, event.Object), nil, nil)
			continue
		}
		s.note(string(event.Type)+" "+job.Annotations[metav1.InitialEventsAnnotationKey], job, nil)
	}
}

func initialEventsEnd(o runtime.Object) bool {
	is, err := meta.Accessor(o)
	return err == nil && is.GetAnnotations()[metav1.InitialEventsAnnotationKey] != ""
}

func (s *story) note(what string, job *batchv1.Job, err error) {
	if err != nil {
		status := apierrors.APIStatus(nil)
		if !errors.As(err, &status) {
			s.all = append(s.all, what+": "+err.Error())
			return
		}
		is := status.Status()
		about := ptr.Deref(is.Details, metav1.StatusDetails{})
		s.all = append(s.all, fmt.Sprintf("%s: %d %s %s %s", what, is.Code, is.Reason, about.Kind, about.Name))
		return
	}
	if job == nil {
		s.all = append(s.all, what)
		return
	}
	var labels []string
	for key, value := range job.Labels {
		if !strings.Contains(key, "controller-uid") && !strings.Contains(key, "job-name") {
			labels = append(labels, key+"="+value)
		}
	}
	slices.Sort(labels)
	s.all = append(s.all, fmt.Sprintf("%s: %s generation %d, parallelism %d, active %d, %v, x=%s, finalizers %v, being deleted %t, has UID %t, version %t",
		what, job.Name, job.Generation, ptr.Deref(job.Spec.Parallelism, 0), job.Status.Active, labels, job.Annotations["x"],
		job.Finalizers, job.DeletionTimestamp != nil, job.UID != "", job.ResourceVersion != ""))
}
