package clusters

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/placement/autoscaling"
)

// TestNodePoolsWithoutAnEnd: of a list whose pages never end, the first ones count.
func TestNodePoolsWithoutAnEnd(t *testing.T) {
	w := newWorld(t)
	c := w.server.Add("c", "uid", "t")
	c.Answer("get nodepools", func(w http.ResponseWriter, req *http.Request) {
		from := 0
		_, _ = fmt.Sscan(req.URL.Query().Get("continue"), &from) // the first page has none
		var items []string
		for i := range poolsPerPage {
			items = append(items, fmt.Sprintf(`{"metadata":{"name":"p%d"}}`, from+i))
		}
		w.Header().Set("Content-Type", jsonType)
		fmt.Fprintf(w, `{"metadata":{"continue":"%d"},"items":[%s]}`, from+poolsPerPage, strings.Join(items, ","))
	})
	worker := w.configure("w1", c.Kubeconfig("t"), Settings{Spec: v1alpha1.WorkerClusterSpec{Capacity: v1alpha1.CapacityAutoscaled}}, known{})
	w.until("they're read", func() bool { return worker.autoscaler.observed.Load() != nil })
	if n := len(worker.autoscaler.observed.Load().Pools); n != autoscaling.MaxPools {
		t.Errorf("%d NodePools are known, want %d", n, autoscaling.MaxPools)
	}
}
