package hub

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/jobferry/jobferry/pkg/util/costtest"
)

// A tenant who may make LocalQueues makes very many, or large ones.
func TestVeryManyQueues(t *testing.T) {
	for name, row := range map[string]struct{ queues, note, shown int }{
		"few": {100, 10, 100}, "many": {30_000, 10, maxQueues}, "large ones": {100, 250_000, 3},
	} {
		queue := kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Annotations: map[string]string{"note": strings.Repeat("x", row.note)}}}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if !strings.HasSuffix(r.URL.Path, "localqueues") {
				_, _ = fmt.Fprint(w, `{"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"ClusterQueueList"}`)
				return
			}
			end, more := row.queues, ""
			if limit, _ := strconv.Atoi(r.URL.Query().Get("limit")); limit > 0 && limit < row.queues {
				end, more = limit, "more"
			}
			_, _ = fmt.Fprintf(w, `{"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"LocalQueueList","metadata":{"continue":%q},"items":[`, more)
			for i := range end {
				queue := queue // the last request may still be answered
				queue.Name = fmt.Sprint("queue-", i)
				text, _ := json.Marshal(&queue)
				if _, err := fmt.Fprintf(w, "%s%s", strings.Repeat(",", min(i, 1)), text); err != nil {
					return
				}
			}
			_, _ = fmt.Fprint(w, "]}")
		}))
		defer server.Close()
		h, err := New(&rest.Config{Host: server.URL}, "", clock.RealClock{})
		if err != nil {
			t.Fatal(err)
		}
		before := costtest.Heap()
		page := h.Queues(t.Context())
		held := costtest.Heap() - before
		if n := len(page.LocalQueues); n != row.shown || (len(page.Missing) == 1) != (row.shown < row.queues) || held > 8<<20 {
			t.Errorf("%s: %d are shown, in %d KiB, and %q", name, n, held>>10, page.Missing)
		}
	}
}
