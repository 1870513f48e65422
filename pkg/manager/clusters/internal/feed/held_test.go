package feed

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/jobferry/jobferry/pkg/manager/clusters/clustertest"
	"github.com/jobferry/jobferry/pkg/manager/clusters/internal/link"
)

// TestLargePagesAtOnce: a worker answers all lists at the same time, with pages that become large.
// One is decoded and taken in at a time.
func TestLargePagesAtOnce(t *testing.T) {
	const lists, objects = 6, 5_000
	page := &batchv1.JobList{TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "JobList"}, Items: make([]batchv1.Job, objects)}
	server := clustertest.NewServer(func() {})
	defer server.Close()
	c := server.Add("c", "uid", "t")
	var asked sync.WaitGroup
	asked.Add(lists)
	c.Answer("get jobs", func(w http.ResponseWriter, _ *http.Request) {
		asked.Done()
		asked.Wait()
		w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
		_ = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(page, w)
	})
	l, err := link.New(link.Options{
		QPS: 1000, Burst: 1000, RequestTimeout: 30 * time.Second, ProbeInterval: time.Minute, ProbeTimeout: 30 * time.Second,
		RetryDelay: time.Minute, MaxBackoff: time.Minute, Clock: clock.RealClock{}, Wake: func() {},
		Mismatch: func(types.UID) (reason, message string) { return "", "" },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	l.Lead(link.To(c.Kubeconfig("t")))
	if l.Keep(t.Context()); !l.Open() {
		t.Fatalf("%+v", l.Observation())
	}
	api, err := l.Watcher(batchv1.SchemeGroupVersion)
	if err != nil {
		t.Fatal(err)
	}
	var now, most, taken atomic.Int32
	var running sync.WaitGroup
	for range lists {
		seen := 0
		into := newIntake(&batchv1.Job{}, func(j *batchv1.Job) (*batchv1.Job, bool) {
			switch seen++; seen {
			case 1:
				most.Store(max(most.Load(), now.Add(1)))
			case objects:
				now.Add(-1)
			}
			taken.Add(1)
			return j, false
		}, nil, 1, 1, "%d %d")
		from := informerSource{link: l, api: api, intake: into}
		running.Go(func() {
			if _, err := from.list(t.Context(), metav1.ListOptions{}, func(metav1.ListOptions) *rest.Request {
				return api.Get().Resource("jobs")
			}); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	if most.Load() != 1 || taken.Load() != lists*objects {
		t.Errorf("%d pages are held at a time, and %d objects come", most.Load(), taken.Load())
	}
}
