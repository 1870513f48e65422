package worker

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/util/pages"
)

// TestPodsThatTenantsHaveEnlarged: a Job's template doesn't tell how large its Pods are by now.
func TestPodsThatTenantsHaveEnlarged(t *testing.T) {
	const all, large = 400, 200 << 10
	c := newCluster(t, Options{})
	job := aJob()
	var lists, begins, size, largest int // of pages, in bytes
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		limit, _ := strconv.Atoi(query.Get("limit"))
		from, _ := strconv.Atoi(query.Get("continue"))
		if lists++; query.Get("labelSelector") == "" || limit == 0 || lists > 4*all {
			http.Error(w, "bad list", http.StatusBadRequest)
			return
		}
		page := corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
		for i := from; i < min(from+limit, all); i++ {
			page.Items = append(page.Items, *aPod(fmt.Sprintf("p%03d", i), func(p *corev1.Pod) {
				p.UID = types.UID(fmt.Sprint("u", i))
				if i/100%2 == 1 { // small ones come first, and again later
					p.Annotations = map[string]string{"theirs": strings.Repeat("x", large)}
				}
			}))
		}
		if from+limit < all {
			page.Continue = strconv.Itoa(from + limit)
		}
		text, _ := json.Marshal(page)
		if from != begins { // the page before was taken
			largest, begins = max(largest, size), from
		}
		size = len(text)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(text)
	}))
	defer server.Close()
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	live, err := client.New(pages.Bounded(&rest.Config{Host: server.URL, QPS: -1}), client.Options{Mapper: mapper})
	if err != nil {
		t.Fatal(err)
	}
	c.jobs.live = live
	known := c.jobs.memory.of(job)
	if err := c.jobs.confirmPods(t.Context(), job, nil, known); err != nil {
		t.Fatal(err)
	}
	if len(known.created) != all {
		t.Errorf("%d Pods found, want %d", len(known.created), all)
	}
	largest = max(largest, size)
	t.Logf("%d lists, the largest that was taken has %d KiB", lists, largest>>10)
	if largest > maxPageBytes || lists > all/2 {
		t.Errorf("%d lists, and one of %d bytes, want %d, and %d bytes", lists, largest, all/2, maxPageBytes)
	}
}
