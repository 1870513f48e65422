package pages

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/jobferry/jobferry/pkg/util/costtest"
)

// oldServer is an API server without the feature gate WatchList, which has ConfigMaps. As from a
// watch cache, lists of version 0 have no pages.
type oldServer struct {
	all   []corev1.ConfigMap
	lists int
}

const versionOfAll = "77"

func (s *oldServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case query.Get("sendInitialEvents") != "":
		refused := apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", nil)
		w.WriteHeader(http.StatusUnprocessableEntity)
		_ = json.NewEncoder(w).Encode(refused.Status())
		return
	case query.Get("watch") != "":
		if query.Get("resourceVersion") != versionOfAll {
			http.Error(w, "a watch that misses events", http.StatusInternalServerError)
			return
		}
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return
	}
	s.lists++
	limit, _ := strconv.Atoi(query.Get("limit"))
	from, _ := strconv.Atoi(query.Get("continue"))
	if limit == 0 || query.Get("resourceVersion") == "0" {
		limit = len(s.all)
	}
	about := metav1.ListMeta{ResourceVersion: versionOfAll}
	end := min(from+limit, len(s.all))
	if end < len(s.all) {
		about.Continue = strconv.Itoa(end)
	}
	text, _ := json.Marshal(about)
	_, _ = fmt.Fprintf(w, `{"apiVersion": "v1", "kind": "ConfigMapList", "metadata": %s, "items": [`, text)
	for i := range s.all[from:end] { // one by one: it's the client's memory that is measured
		if i > 0 {
			_, _ = w.Write([]byte(","))
		}
		text, _ := json.Marshal(s.all[from+i])
		if _, err := w.Write(text); err != nil {
			return
		}
	}
	_, _ = w.Write([]byte("]}"))
}

// TestListsOfACacheComeInPages: the first list has 60 objects of 1 MiB, between small ones.
func TestListsOfACacheComeInPages(t *testing.T) {
	const objects, large, size = 1500, 60, 1 << 20
	data := map[string]string{"text": strings.Repeat("x", size)}
	from := &oldServer{}
	for i := range objects {
		o := corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: fmt.Sprint("c", i)}}
		if i >= 600 && i < 600+large {
			o.Data = data
		}
		from.all = append(from.all, o)
	}
	server := httptest.NewServer(from)
	t.Cleanup(server.Close)
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	before, most := costtest.Heap(), int64(0)
	objectsCache, err := NewCache(&rest.Config{Host: server.URL, QPS: -1}, cache.Options{
		Scheme: scheme.Scheme, Mapper: mapper,
		DefaultTransform: func(object any) (any, error) {
			if o, is := object.(*corev1.ConfigMap); is && o.Data != nil {
				most = max(most, costtest.Heap()-before)
				o.Data = nil
			}
			return object, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := objectsCache.GetInformer(t.Context(), &corev1.ConfigMap{}); err != nil {
		t.Fatal(err)
	}
	go func() { _ = objectsCache.Start(t.Context()) }()
	if !objectsCache.WaitForCacheSync(t.Context()) {
		t.Fatal("the cache hasn't synced")
	}
	var held corev1.ConfigMapList
	if err := objectsCache.List(t.Context(), &held); err != nil {
		t.Fatal(err)
	}
	if len(held.Items) != objects {
		t.Errorf("the cache has %d objects, want %d", len(held.Items), objects)
	}
	t.Logf("%d lists, and at most %d MiB in memory", from.lists, most>>20)
	if from.lists < large || from.lists > 4*large {
		t.Errorf("%d lists, want about one for each large object", from.lists)
	}
	if limit := int64(4 * maxBytes); most == 0 || most > limit {
		t.Errorf("a page takes %d bytes, want %d", most, limit)
	}
}
