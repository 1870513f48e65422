package packed

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	fcache "k8s.io/client-go/tools/cache/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/mirror/mirrortest"
)

// base is a cache.Cache with one informer, of packed Jobs.
type base struct {
	cache.Cache
	jobs toolscache.SharedIndexInformer
}

func (b *base) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return b.jobs, nil
}

// cacheOf returns a cache of Jobs, which hasn't been started, and what they are watched from.
func cacheOf(t *testing.T, jobs ...*batchv1.Job) (c *Cache, start func(), from *fcache.FakeControllerSource) {
	t.Helper()
	from = fcache.NewFakeControllerSource()
	t.Cleanup(from.Shutdown)
	for _, job := range jobs {
		from.Add(job)
	}
	informer := toolscache.NewSharedIndexInformer(from, &batchv1.Job{}, 0, toolscache.Indexers{})
	if err := informer.SetTransform(after(nil)); err != nil {
		t.Fatal(err)
	}
	return &Cache{&base{jobs: informer}}, func() {
		go informer.RunWithContext(t.Context())
		if !toolscache.WaitForCacheSync(t.Context().Done(), informer.HasSynced) {
			t.Fatal("the cache hasn't synced")
		}
	}, from
}

func TestJobsAreReadFromTheCache(t *testing.T) {
	a, b := mirrortest.New("a").Label("team", "x").Obj(), mirrortest.New("b").Label("team", "y").Obj()
	other := mirrortest.New("c").Label("team", "x").Do(func(j *batchv1.Job) { j.Namespace = "other" }).Obj()
	c, start, _ := cacheOf(t, a, b, other)
	start()
	for name, row := range map[string]struct {
		options []client.ListOption
		want    []string
	}{
		"all":                     {nil, []string{"a", "b", "c"}},
		"of a namespace":          {[]client.ListOption{client.InNamespace(a.Namespace)}, []string{"a", "b"}},
		"with labels":             {[]client.ListOption{client.MatchingLabels{"team": "x"}}, []string{"a", "c"}},
		"with both":               {[]client.ListOption{client.InNamespace("other"), client.MatchingLabels{"team": "x"}}, []string{"c"}},
		"of an unknown namespace": {[]client.ListOption{client.InNamespace("none")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var list batchv1.JobList
			if err := c.List(t.Context(), &list, row.options...); err != nil {
				t.Fatal(err)
			}
			found := map[string]bool{}
			for _, job := range list.Items {
				found[job.Name] = true
			}
			want := map[string]bool{}
			for _, name := range row.want {
				want[name] = true
			}
			if diff := cmp.Diff(want, found); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	var job batchv1.Job
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(b), &job); err != nil || job.Labels["team"] != "y" || job.Kind != "Job" {
		t.Errorf("got %+v (%v)", job, err)
	}
	if err := c.Get(t.Context(), types.NamespacedName{Namespace: a.Namespace, Name: "none"}, &job); !apierrors.IsNotFound(err) {
		t.Errorf("a Job that isn't there: %v", err)
	}
}

// TestJobsThatAreListed: an API server without the feature gate WatchList.
func TestJobsThatAreListed(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		w.Header().Set("Content-Type", "application/json")
		switch {
		case query.Get("sendInitialEvents") != "":
			w.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = w.Write([]byte(`{"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "Invalid", "code": 422}`))
		case query.Get("watch") != "":
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		default:
			_ = json.NewEncoder(w).Encode(batchv1.JobList{
				TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "JobList"},
				ListMeta: metav1.ListMeta{ResourceVersion: "7"}, Items: []batchv1.Job{*running()},
			})
		}
	}))
	t.Cleanup(server.Close)
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(jobKind, meta.RESTScopeNamespace)
	c, err := NewCache(&rest.Config{Host: server.URL}, cache.Options{Mapper: mapper})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.GetInformer(t.Context(), &batchv1.Job{}); err != nil {
		t.Fatal(err)
	}
	go func() { _ = c.Start(t.Context()) }()
	if !c.WaitForCacheSync(t.Context()) {
		t.Fatal("the cache hasn't synced")
	}
	var job batchv1.Job
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(running()), &job); err != nil {
		t.Error(err)
	}
}

func TestACacheThatHasNotStartedHidesNothing(t *testing.T) {
	c, _, _ := cacheOf(t, running())
	var notStarted *cache.ErrCacheNotStarted
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(running()), &batchv1.Job{}); !errors.As(err, &notStarted) {
		t.Errorf("get: %v", err)
	}
	if err := c.List(t.Context(), &batchv1.JobList{}); !errors.As(err, &notStarted) {
		t.Errorf("list: %v", err)
	}
}

func TestWhatIsNotServedIsRefused(t *testing.T) {
	c, start, _ := cacheOf(t)
	start()
	for name, option := range map[string]client.ListOption{
		"a field selector": client.MatchingFields{"metadata.name": "a"}, "a limit": client.Limit(1), "a page": client.Continue("x"),
	} {
		if err := c.List(t.Context(), &batchv1.JobList{}, option); !errors.Is(err, errRead) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := c.IndexField(t.Context(), &batchv1.Job{}, "f", nil); !errors.Is(err, errRead) {
		t.Errorf("an index: %v", err)
	}
}

func TestHandlersOfTheCacheSeeJobs(t *testing.T) {
	c, start, from := cacheOf(t, running())
	informer, err := c.GetInformer(t.Context(), &batchv1.Job{})
	if err != nil {
		t.Fatal(err)
	}
	events := make(chan string, 10)
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { events <- "add " + o.(*batchv1.Job).Name },
		UpdateFunc: func(_, o any) { events <- "update " + o.(*batchv1.Job).Name },
		DeleteFunc: func(o any) { events <- "delete " + o.(*batchv1.Job).Name },
	})
	if err != nil {
		t.Fatal(err)
	}
	start()
	from.Modify(running())
	from.Delete(running())
	for _, want := range []string{"add j", "update j", "delete j"} {
		select {
		case got := <-events:
			if got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		case <-t.Context().Done():
			t.Fatalf("no %q", want)
		}
	}
}

func TestJobsArePackedAfterTheTransformOfTheOptions(t *testing.T) {
	slim := after(func(object any) (any, error) {
		if job, is := object.(*batchv1.Job); is {
			job.Labels = nil
		}
		return object, nil
	})
	object, err := slim(running())
	if err != nil {
		t.Fatal(err)
	}
	p, is := object.(*Job)
	if !is || len(p.Unpack().Labels) > 0 {
		t.Errorf("got %+v", object)
	}
	if pod, err := slim(&corev1.Pod{}); err != nil || pod.(*corev1.Pod) == nil {
		t.Errorf("a Pod became %v (%v)", pod, err)
	}
	failed := errors.New("failed")
	if _, err := after(func(any) (any, error) { return nil, failed })(running()); !errors.Is(err, failed) {
		t.Errorf("the transform's error became %v", err)
	}
}

func TestOnlyJobsHaveNoIndexes(t *testing.T) {
	var got toolscache.Indexers
	create := withoutIndexes(func(_ toolscache.ListerWatcher, _ runtime.Object, _ time.Duration, indexes toolscache.Indexers) toolscache.SharedIndexInformer {
		got = indexes
		return nil
	})
	for want, example := range []runtime.Object{&batchv1.Job{}, &corev1.Secret{}} {
		create(nil, example, 0, toolscache.Indexers{toolscache.NamespaceIndex: nil})
		if len(got) != want {
			t.Errorf("an informer of %T has %d indexes, want %d", example, len(got), want)
		}
	}
}
