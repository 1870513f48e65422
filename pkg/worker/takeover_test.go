package worker

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// a takeover from an API server whose lists have that resourceVersion.
func aTakeover(t *testing.T, newest string) (*takeover, *[]string) {
	t.Helper()
	log := &[]string{}
	c := newCluster(t, Options{})
	return &takeover{
		live: interceptor.NewClient(c.api, interceptor.Funcs{
			List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				var o client.ListOptions
				if o.ApplyOptions(opts); o.Namespace == "" || o.FieldSelector.Empty() {
					t.Errorf("lists all, with %+v", o)
				}
				*log = append(*log, "list")
				if len(*log) == 1 {
					return errors.New("no answer")
				}
				list.SetResourceVersion(newest)
				return nil
			},
		}),
		caches: &versions{has: []string{newest}, log: log}, retry: time.Microsecond,
	}, log
}

// versions are what a cache answers at one look after the other; the last one stays.
type versions struct {
	cache.Informer
	toolscache.Indexer
	has  []string
	look func()
	log  *[]string
}

func (v *versions) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return v, nil
}

func (v *versions) GetIndexer() toolscache.Indexer { return v }

func (v *versions) AddIndexers(toolscache.Indexers) error {
	if v.log != nil {
		*v.log = append(*v.log, "index")
	}
	return nil
}

func (v *versions) LastStoreSyncResourceVersion() string {
	if v.look != nil {
		v.look()
	}
	has := v.has[0]
	if len(v.has) > 1 {
		v.has = v.has[1:]
	}
	return has
}

// The API server is asked once for all controllers, again after an error, and before an informer is
// started.
func TestTakeoverReadsBeforeItWatches(t *testing.T) {
	take, log := aTakeover(t, "10")
	inner := &sourceLog{log: log}
	for range 3 {
		if err := (heldSource{inner, take, watchedPods, nil}).Start(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"list", "list", "list", "index", "watch", "watch", "watch"}; !slices.Equal(*log, want) {
		t.Errorf("did %v, want %v", *log, want)
	}
}

type sourceLog struct {
	source.SyncingSource
	log *[]string
	err error
}

func (s *sourceLog) Start(context.Context, workQueue) error {
	*s.log = append(*s.log, "watch")
	return nil
}

func (s *sourceLog) WaitForSync(context.Context) error { return s.err }

func someMetrics(t *testing.T, prefix string) *metrics {
	t.Helper()
	m, err := newMetrics(prometheus.NewRegistry(), prefix)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func secondsBehind(t *testing.T, m *metrics) float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(m.behind.WithLabelValues("pods"))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return families[0].GetMetric()[0].GetGauge().GetValue()
}

// No worker starts before the cache is as new as the consistent read, and the metrics of each of
// the controllers that share it say so.
func TestTakeoverAwaitsTheCache(t *testing.T) {
	take, _ := aTakeover(t, "10")
	for _, m := range []*metrics{someMetrics(t, noPrefix), someMetrics(t, "jobferry_")} {
		looks, behind := 0, 0.0
		take.caches = &versions{has: []string{"9", "9", "9", "10"}, look: func() {
			looks++
			behind = max(behind, secondsBehind(t, m))
		}}
		s := heldSource{&sourceLog{log: &[]string{}}, take, watchedPods, m}
		if err := s.Start(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if err := s.WaitForSync(t.Context()); err != nil || looks != 4 || behind == 0 {
			t.Errorf("error %v, %d looks, metric %v", err, looks, behind)
		}
		if after := secondsBehind(t, m); after != 0 {
			t.Errorf("metric %v afterwards", after)
		}
		s.SyncingSource.(*sourceLog).err = errors.New("no informer")
		if err := s.WaitForSync(t.Context()); err == nil {
			t.Error("the error of the informer is lost")
		}
	}
}

func TestTakeoverThatCannotBe(t *testing.T) {
	for name, row := range map[string]struct {
		caches informers
		newest string
		want   string
	}{
		"a watch that brings nothing":     {&versions{has: []string{"9"}}, "10", "stays at resourceVersion 9, and the API server has 10"},
		"a feature gate that is disabled": {&versions{has: []string{""}}, "10", "AtomicFIFO"},
		"a cache of some namespaces":      {dividedCache{}, "10", "use one of the whole cluster"},
		"an API server without versions":  {&versions{has: []string{"9"}}, "", "not well formed"},
	} {
		t.Run(name, func(t *testing.T) {
			take, _ := aTakeover(t, row.newest)
			if err := take.prepare(t.Context()); err != nil {
				t.Fatal(err)
			}
			take.caches = row.caches
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			if err := take.await(ctx, watchedPods, someMetrics(t, noPrefix)); err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("error %v, want %q", err, row.want)
			}
		})
	}
}

type dividedCache struct{}

func (dividedCache) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return struct{ cache.Informer }{}, nil
}
