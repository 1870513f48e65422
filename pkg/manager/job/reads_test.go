package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/manager/packed"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// hubWith is a hub whose API server answers every request with one text.
func hubWith(t *testing.T, text []byte) client.Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/apis/batch/v1/namespaces/team/jobs/train" && r.URL.Path != "/apis/batch/v1/namespaces/team/jobs/train/status" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(text)
	}))
	t.Cleanup(server.Close)
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(batchv1.SchemeGroupVersion.WithKind("Job"), meta.RESTScopeNamespace)
	c, err := client.New(&rest.Config{Host: server.URL}, client.Options{Mapper: mapper})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestAnswersAreReadWhole by the client that the manager has.
func TestAnswersAreReadWhole(t *testing.T) {
	job := aJob("train")
	object := toTree(job)
	object["spec"].(map[string]any)["future"] = map[string]any{"a": int64(1)}
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	hub := hubWith(t, text)
	heavy := func(types.UID) int64 { return packed.SmallWeight + 1 }
	a := newWholeJobs(hub, hub, testingclock.NewFakeClock(noon), heavy).open(jobKey)
	patch := client.RawPatch(types.MergePatchType, []byte(`{}`))
	for name, ask := range map[string]func() (*batchv1.Job, error){
		"read":         func() (*batchv1.Job, error) { return a.read(t.Context(), job.UID) },
		"patch status": func() (*batchv1.Job, error) { return a.patchStatus(t.Context(), job.UID, patch) },
		"read whole": func() (*batchv1.Job, error) {
			whole, err := a.readWhole(t.Context(), job.UID)
			return wholeWithFuture(t, whole), err
		},
		"patch whole": func() (*batchv1.Job, error) {
			whole, err := a.patchWhole(t.Context(), job.UID, patch)
			return wholeWithFuture(t, whole), err
		},
	} {
		got, err := ask()
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if got.UID != job.UID || len(got.Spec.Template.Spec.Containers) != 1 {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	a.key.Name = "none"
	if _, err := a.readWhole(t.Context(), ""); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("a Job that isn't there: %v", err)
	}
}

func wholeWithFuture(t *testing.T, whole *mirror.Whole) *batchv1.Job {
	t.Helper()
	if whole == nil {
		return nil
	}
	if paths := whole.Recent.Paths(); !slices.Equal(paths, []string{"spec.future"}) {
		t.Errorf("recent: %v", paths)
	}
	return whole.Job
}

// largest has Jobs of 1.5 MiB of protobuf, the most that etcd accepts, that become as much as can
// be when they're read.
func largest() map[string]*batchv1.Job {
	const bytes = 3 << 19
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"a": ""}}
	specs := map[string]func(n int) corev1.PodSpec{
		"one text": func(n int) corev1.PodSpec { return container(corev1.Container{Args: []string{strings.Repeat("<", n)}}) },
		"texts":    func(n int) corev1.PodSpec { return container(corev1.Container{Args: make([]string, n)}) },
		"variables": func(n int) corev1.PodSpec {
			return container(corev1.Container{Env: slices.Repeat([]corev1.EnvVar{{Name: "a"}}, n)})
		},
		"projections": func(n int) corev1.PodSpec {
			sources := corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: make([]corev1.VolumeProjection, n)}}
			return corev1.PodSpec{Volumes: []corev1.Volume{{VolumeSource: sources}}}
		},
		"volumes": func(n int) corev1.PodSpec {
			empty := corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
			return corev1.PodSpec{Volumes: slices.Repeat([]corev1.Volume{{Name: "aaaa", VolumeSource: empty}}, n)}
		},
		"nodes": func(n int) corev1.PodSpec {
			return corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: make([]corev1.NodeSelectorTerm, n)},
			}}}
		},
		"Pods": func(n int) corev1.PodSpec {
			term := corev1.PodAffinityTerm{TopologyKey: "a", LabelSelector: selector, NamespaceSelector: selector}
			return corev1.PodSpec{Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: slices.Repeat([]corev1.PodAffinityTerm{term}, n),
			}}}
		},
		"containers": func(n int) corev1.PodSpec {
			small := corev1.Container{Name: "aaaa", Image: "a", TerminationMessagePath: "a", TerminationMessagePolicy: "File", ImagePullPolicy: "Always"}
			return corev1.PodSpec{Containers: slices.Repeat([]corev1.Container{small}, n)}
		},
		"requests": func(n int) corev1.PodSpec {
			small := corev1.Container{Name: "aaaa", Image: "a", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"a": {}}, Limits: corev1.ResourceList{"a": {}}}}
			return corev1.PodSpec{Containers: slices.Repeat([]corev1.Container{small}, n)}
		},
	}
	jobs := map[string]*batchv1.Job{}
	for name, of := range specs {
		job := aJob("train")
		job.Spec.Template.Spec = of(1000)
		empty := aJob("train")
		empty.Spec.Template.Spec = of(0)
		n := (bytes - empty.Size()) * 1000 / (job.Size() - empty.Size())
		job.Spec.Template.Spec = of(n)
		jobs[name] = job
	}
	managed := aJob("train")
	var fields strings.Builder
	for i := range 70_000 {
		fmt.Fprintf(&fields, `,"k:{\"n\":\"%d\"}":{".":{}}`, i)
	}
	managed.ManagedFields = []metav1.ManagedFieldsEntry{{FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1("{" + fields.String()[1:] + "}")}}
	jobs["managed fields"] = managed
	return jobs
}

func container(c corev1.Container) corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{c}}
}

// mostRead is what is allocated at most for a Job that etcd accepts, and mostHeld what it takes
// when it's read: most of that are maps of one entry, each of which takes 40 times its protobuf.
const (
	mostRead = 80 << 20
	mostHeld = 56 << 20
)

// TestTheLargestJobs compares what reading each one allocates with its weight. What is held is that
// without what the client has read.
func TestTheLargestJobs(t *testing.T) {
	for name, job := range largest() {
		t.Run(name, func(t *testing.T) {
			text := inJSON(t, job)
			hub := hubWith(t, text)
			weight := packed.WeightOf(job)
			a := newWholeJobs(hub, hub, testingclock.NewFakeClock(noon), func(types.UID) int64 { return weight }).open(jobKey)
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			whole, err := a.readWhole(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			runtime.ReadMemStats(&after)
			took := int64(after.TotalAlloc - before.TotalAlloc) //nolint:gosec // not in the life of a test
			held := int64(heap().HeapAlloc) - int64(before.HeapAlloc)
			runtime.KeepAlive(whole)
			t.Logf("%d KiB of protobuf, %d KiB of JSON: reading takes %d KiB, %d are held; the weight is %d KiB",
				job.Size()>>10, len(text)>>10, took>>10, held>>10, weight>>10)
			if took > weight || took > mostRead || held > mostHeld {
				t.Errorf("reading takes %d bytes, of which %d are held, want %d by its weight, and %d and %d at most", took, held, weight, mostRead, mostHeld)
			}
		})
	}
}

// TestLooksAtLargeJobsArePaced has a tenant make 60 Jobs, of which the cache holds stubs, or no
// templates, and that are looked at ten times in a second.
func TestLooksAtLargeJobsArePaced(t *testing.T) {
	for name, lightly := range map[string]func(*batchv1.Job){"stubs": packed.MakeStub, "light": mirror.Lighten} {
		t.Run(name, func(t *testing.T) {
			clock := testingclock.NewFakeClock(noon)
			reads := map[string]int{}
			hub := interceptor.NewClient(nil, interceptor.Funcs{
				Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
					reads[key.Namespace]++
					into.(*wholeAnswer).answerWith(toTree(aJob("train")))
					return nil
				},
			})
			whole := newWholeJobs(nil, hub, clock, func(types.UID) int64 { return lookBytes })
			look := func(namespace string) error {
				held := aJob("train")
				lightly(held)
				a := whole.open(types.NamespacedName{Namespace: namespace, Name: "train"})
				defer a.release()
				s := &dispatch.Snapshot{Job: held, Key: a.key}
				if err := a.complete(t.Context(), s); err != nil {
					return err
				}
				return a.refresh(t.Context(), s, &seenSpec{}, false)
			}
			for second := range 60 {
				for range 10 * 60 {
					if err := look("greedy"); err != nil && !errors.Is(err, errNoMemory) {
						t.Fatal(err)
					}
				}
				if second%10 == 0 {
					if err := look("other"); err != nil {
						t.Errorf("another namespace: %v", err)
					}
				}
				clock.Step(time.Second)
			}
			if want := 60 + 11; reads["greedy"] > want || reads["greedy"] < 60 || reads["other"] != 6 {
				t.Errorf("%v reads in a minute, want %d", reads, want)
			}
			clock.Step(time.Minute)
			if err := look("other"); err != nil || len(whole.looks.until) != 1 {
				t.Errorf("left: %v (%v)", whole.looks.until, err)
			}
		})
	}
}
