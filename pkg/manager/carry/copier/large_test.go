package copier

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	goruntime "runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/carry"
	"github.com/jobferry/jobferry/pkg/util/pages"
)

// serving is a client of an API server that answers with one object to all requests.
func serving(t *testing.T, object runtime.Object) client.Client {
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	answer, err := runtime.Encode(scheme.Codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion), object)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
		_, _ = w.Write(answer)
	}))
	t.Cleanup(server.Close)
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	c, err := client.New(pages.Bounded(&rest.Config{Host: server.URL, QPS: -1}), client.Options{Mapper: mapper})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// memory counts what is reserved of it.
type memory struct {
	full            error
	asked, reserved int64
}

func (m *memory) Reserve(bytes int64) (func(int64), error) {
	m.asked = bytes
	if m.full != nil {
		return nil, m.full
	}
	m.reserved += bytes
	return func(int64) { m.reserved -= bytes }, nil
}

func configMap(keys, bytes int) *corev1.ConfigMap {
	c := &corev1.ConfigMap{ObjectMeta: named("x"), Data: map[string]string{}}
	for i := range keys {
		c.Data[fmt.Sprintf("k%06d", i)] = strings.Repeat("x", bytes)
	}
	return c
}

// TestLargeObjectsTakeMemoryThatIsReserved: nothing of a large object is decoded without. Of what
// is allocated, half are maps that have grown.
func TestLargeObjectsTakeMemoryThatIsReserved(t *testing.T) {
	const nothing = 2 << 20
	full := errors.New("full")
	for name, row := range map[string]struct {
		source  *corev1.ConfigMap
		memory  memory
		most    uint64 // bytes that are allocated
		asks    bool
		blocked string
	}{
		"small":          {configMap(100, 500), memory{full: full}, nothing, false, ""},
		"no memory":      {configMap(130_000, 0), memory{full: full}, nothing, true, ""},
		"too large":      {configMap(130_000, 0), memory{}, 2 * largeBytes, true, "too many keys"},
		"very many keys": {configMap(30_000, 0), memory{}, 2 * largeBytes, true, ""},
		"large texts":    {configMap(10, 100<<10), memory{}, 2 * largeBytes, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			theirs := row.source.DeepCopy()
			theirs.Labels = map[string]string{v1alpha1.LabelOrigin: "hub-1"}
			theirs.Annotations = map[string]string{v1alpha1.AnnotationHubUID: "source"}
			theirs.Data["changed"] = "there"
			w := newWorld(t, interceptor.Funcs{}, interceptor.Funcs{})
			w.Hub, w.worker = serving(t, row.source), serving(t, theirs)
			w.job.Spec.Template.Spec = corev1.PodSpec{Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{
				ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "x"}},
			}}}}
			carryIt := func(m Memory) ([]Write, error) {
				return w.Carry(t.Context(), w.job, w.mirror, []carry.Kind{carry.ConfigMap}, workerCluster{w.worker, nil}, m, noon)
			}
			_, _ = carryIt(&memory{full: full}) // connects
			before := allocated()
			writes, err := carryIt(&row.memory)
			took := allocated() - before
			t.Logf("%d KiB are allocated", took>>10)
			if took > row.most {
				t.Errorf("%d bytes are allocated, want %d", took, row.most)
			}
			if asked := row.memory.asked > 0; asked != row.asks || row.memory.reserved != 0 {
				t.Errorf("asked for memory: %t, and %d bytes stay reserved", asked, row.memory.reserved)
			}
			if refused := row.asks && row.memory.full != nil; errors.Is(err, full) != refused {
				t.Errorf("got %v", err)
			}
			copied, _ := w.Tracker.Get(in(train), "mirror-1")
			if blocked := strings.Join(copied.Blocked, ""); !strings.Contains(blocked, row.blocked) || (len(writes) > 0) != (err == nil && row.blocked == "") {
				t.Errorf("blocked: %q, writes: %v", blocked, writes)
			}
		})
	}
}

func allocated() uint64 {
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	return m.TotalAlloc
}
