package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/util/costtest"
	"github.com/jobferry/jobferry/pkg/util/pages"
)

// largePodServer is an API server with a Pod that a tenant has given very many owners.
type largePodServer struct {
	*httptest.Server
	status int
}

func newLargePodServer(t *testing.T) (*largePodServer, client.Options) {
	large := aPod("p", func(p *corev1.Pod) {
		p.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
		for i := range 15_000 {
			p.OwnerReferences = append(p.OwnerReferences, metav1.OwnerReference{APIVersion: "a/b", Kind: "a", Name: "b", UID: types.UID(fmt.Sprint(i))})
		}
	})
	pod, _ := json.Marshal(large)
	metadata, _ := json.Marshal(metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}, ObjectMeta: large.ObjectMeta,
	})
	s := &largePodServer{status: http.StatusOK}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case s.status != http.StatusOK:
			refused := apierrors.NewForbidden(corev1.Resource("pods"), "p", fmt.Errorf("%s", strings.Repeat("no", 2*maxAnswer)))
			w.WriteHeader(s.status)
			_ = json.NewEncoder(w).Encode(refused.Status())
		case r.Method == http.MethodPatch:
			_, _ = w.Write(metadata)
		default:
			_, _ = w.Write(pod)
		}
	}))
	t.Cleanup(s.Close)
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	return s, client.Options{Mapper: mapper}
}

// A hundred Pods are written at a time, and a tenant can give each 1.5 MB of metadata.
func TestAnswersAboutLargePodsArentRead(t *testing.T) {
	s, options := newLargePodServer(t)
	w, err := newPodWriter(&rest.Config{Host: s.URL, QPS: -1}, options, "a/b")
	if err != nil {
		t.Fatal(err)
	}
	for name, write := range map[string]func() error{
		"untrack": func() error { return w.untrack(t.Context(), aPod("p"), "") },
		"release": func() error { return w.release(t.Context(), aJob(), aPod("p")) },
		"delete":  func() error { return w.delete(t.Context(), aPod("p")) },
		"adopt": func() error {
			if _, err := w.adopt(t.Context(), aJob(), aPod("p")); !apierrors.IsConflict(err) {
				return fmt.Errorf("no conflict, though the version isn't known: %w", err)
			}
			return nil
		},
	} {
		s.status = http.StatusOK
		if err := write(); err != nil { // what is made once is there then
			t.Errorf("%s: %v", name, err)
		}
		if cost := costtest.Of(func() { _ = write() }); cost > 512<<10 {
			t.Errorf("%s: %d KiB are allocated", name, cost>>10)
		}
		if s.status = http.StatusForbidden; name != "adopt" {
			if err := write(); !apierrors.IsForbidden(err) {
				t.Errorf("%s: a refusal is %v", name, err)
			}
		}
	}
}

// largeObjects are those that no bounded answer has. It counts how many are read at a time.
type largeObjects struct {
	client.Reader
	refused   sync.Map
	now, most atomic.Int32
}

func (r *largeObjects) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return r.read(key.Name)
}

func (r *largeObjects) List(_ context.Context, _ client.ObjectList, options ...client.ListOption) error {
	return r.read(options[0].(*client.ListOptions).Namespace)
}

func (r *largeObjects) read(of string) error {
	if _, again := r.refused.LoadOrStore(of, true); !again {
		return pages.ErrTooLarge
	}
	r.most.Store(max(r.most.Load(), r.now.Add(1)))
	for range 1000 { // others come meanwhile, if they may
		runtime.Gosched()
	}
	r.now.Add(-1)
	return nil
}

// A surplus Pod that has changed is read, and its tenant may have enlarged very many. He may also
// have enlarged those of new shards, which are listed, and what Jobs are scheduled by.
func TestLargeObjectsAreReadOneAtATime(t *testing.T) {
	for name, read := range map[string]func(*reconciler, string) error{
		"one": func(r *reconciler, name string) error {
			_, err := r.livePod(t.Context(), types.NamespacedName{Name: name})
			return err
		},
		"of a Job": func(r *reconciler, namespace string) error {
			job := aJob()
			job.Namespace = namespace
			_, err := r.listPods(t.Context(), job, labels.Everything(), metav1.ListOptions{Limit: podsPerPage})
			return err
		},
		"a Workload": func(r *reconciler, name string) error {
			wanted := &schedulingv1beta1.Workload{ObjectMeta: metav1.ObjectMeta{Name: name}}
			_, err := ensure(t.Context(), &jobSync{reconciler: r, job: aJob()}, wanted, &schedulingv1beta1.Workload{}, "Workload", nil, workloadPolicy)
			if err != nil && strings.Contains(err.Error(), "isn't of this Job") { // it's as it was read
				return nil
			}
			return fmt.Errorf("it's taken for the Job's: %w", err)
		},
	} {
		live := &largeObjects{}
		r := &reconciler{live: live}
		for _, err := range parallel(maxParallel, maxParallel, func(i int) error { return read(r, fmt.Sprint(i)) }) {
			if err != nil {
				t.Error(err)
			}
		}
		if most := live.most.Load(); most != 1 {
			t.Errorf("%s: %d at a time", name, most)
		}
	}
}
