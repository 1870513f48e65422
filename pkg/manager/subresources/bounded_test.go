package subresources

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	goruntime "runtime"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// A worker's answer of few bytes can't become many times as much memory: a Pod or a container takes
// two bytes there, and more than a thousand here.
func TestManySmallObjectsAreRefused(t *testing.T) {
	const most = 64 << 20
	empty := strings.TrimSuffix(strings.Repeat("{},", 1<<20), ",")
	for name, answer := range map[string]string{
		"Pods":       `{"kind":"PodList","apiVersion":"v1","items":[` + empty + `]}`,
		"containers": `{"kind":"PodList","apiVersion":"v1","items":[{"spec":{"containers":[` + empty + `]}}]}`,
		"nulls":      `{"kind":"PodList","apiVersion":"v1","items":[` + strings.Repeat("null,", 49_000) + `null]}`,
		"others":     `{"kind":"CronJobList","apiVersion":"batch/v1","items":[` + strings.Repeat("null,", 49_000) + `null]}`,
	} {
		w := newWorld(t)
		w.worker.on(podsPath, func(out http.ResponseWriter, _ *http.Request) {
			out.Header().Set("Content-Type", "application/json")
			fmt.Fprint(out, answer)
		})
		var before, after goruntime.MemStats
		goruntime.ReadMemStats(&before)
		w.refused("pods", http.StatusBadGateway, "or has more than 10000 objects")
		goruntime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > most {
			t.Errorf("%s: %d MiB were allocated for an answer of 3 MiB", name, took>>20)
		}
	}
}

// A worker's quantity that keeps whoever decodes it busy for ever isn't decoded, in an error,
// either.
func TestQuantitiesThatHangAreRefused(t *testing.T) {
	pods := `{"kind":"PodList","apiVersion":"v1","items":[{"spec":{"containers":[{"resources":{"limits":{"cpu":"123456789012345678901e999999999"}}}]}}]}`
	for _, code := range []int{http.StatusOK, http.StatusNotFound} {
		w := newWorld(t)
		w.worker.on(podsPath, func(out http.ResponseWriter, _ *http.Request) {
			out.Header().Set("Content-Type", "application/json")
			out.WriteHeader(code)
			fmt.Fprint(out, pods)
		})
		w.refused("pods", http.StatusBadGateway, "has a quantity that no API server sends")
	}
}

// A proxy's error, which has no kind, is told as one.
func TestErrorsOfAProxyAreTold(t *testing.T) {
	w := newWorld(t)
	w.worker.on(podsPath, func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Content-Type", "application/json")
		out.WriteHeader(http.StatusTooManyRequests)
		fmt.Fprint(out, `{"message":"slow down","traceID":"7e10345"}`)
	})
	w.refused("pods", http.StatusServiceUnavailable, "fails (listing Pods) with 429")
}

// Objects are counted, not what texts hold.
func TestTextsCountAsBytes(t *testing.T) {
	w := newWorld(t)
	odd := pod("job-a", func(p *corev1.Pod) {
		p.Annotations = map[string]string{"text": strings.Repeat(`{"[\`, maxAnswerValues)}
	})
	w.worker.object(podsPath, corev1.PodList{Items: []corev1.Pod{*odd}})
	if got, err := w.get("pods"); err != nil || got.code != http.StatusOK {
		t.Errorf("%d %.300s, %v", got.code, got.content, err)
	}
}

// A worker that sends another format than JSON, in which nothing is counted, isn't read.
func TestOnlyJSONIsRead(t *testing.T) {
	w := newWorld(t)
	w.worker.on(podsPath, func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf")
		fmt.Fprint(out, "k8s\x00")
	})
	w.refused("pods", http.StatusServiceUnavailable, `it answers in "application/vnd.kubernetes.protobuf"`)
}

// Pods that are too large for one chunk are read in smaller ones; a worker that sends more than
// it's asked for is refused.
func TestLargePodsAreReadInSmallChunks(t *testing.T) {
	w := newWorld(t)
	const pods = 60
	heeds := true
	w.worker.on(podsPath, func(out http.ResponseWriter, r *http.Request) {
		limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
		if !heeds {
			limit = pods
		}
		first, _ := strconv.Atoi(r.URL.Query().Get("continue"))
		last := min(first+limit, pods)
		list := corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "5"}}
		for i := first; i < last; i++ {
			list.Items = append(list.Items, *pod(fmt.Sprint("job-", i), func(p *corev1.Pod) {
				p.Annotations = map[string]string{"large": strings.Repeat("x", 200<<10)}
			}))
		}
		if last < pods {
			list.Continue = strconv.Itoa(last)
		}
		writeJSON(out, http.StatusOK, list)
	})
	got, err := w.get("pods")
	var list corev1.PodList
	if err != nil || json.Unmarshal([]byte(got.content), &list) != nil || len(list.Items) != pods {
		t.Errorf("%d, %d Pods, %v", got.code, len(list.Items), err)
	}
	heeds = false
	w.refused("pods", http.StatusBadGateway, "larger than 4 MiB")
}

// In an error, a worker can send whatever it likes instead of a Status, in each format that a
// client knows.
func TestErrorsAreNoObjects(t *testing.T) {
	list := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Raw: bytes.Repeat([]byte{2<<3 | 2, 0}, 30_000)}
	proto, err := list.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	for contentType, body := range map[string]string{
		"application/vnd.kubernetes.protobuf": "k8s\x00" + string(proto),
		"application/yaml":                    "kind: PodList\napiVersion: v1\nitems:\n" + strings.Repeat("-\n", 30_000),
		"application/json":                    `{"kind":"PodList","apiVersion":"v1","items":[` + strings.Repeat("{},", 5000) + "{}]}",
	} {
		w := newWorld(t)
		for _, path := range []string{podsPath, logPath} {
			w.worker.on(path, func(out http.ResponseWriter, _ *http.Request) {
				out.Header().Set("Content-Type", contentType)
				out.WriteHeader(http.StatusInternalServerError)
				fmt.Fprint(out, body)
			})
		}
		for _, what := range []string{"pods", "log"} {
			var before, after goruntime.MemStats
			goruntime.ReadMemStats(&before)
			got, err := w.get(what)
			goruntime.ReadMemStats(&after)
			if took := after.TotalAlloc - before.TotalAlloc; err != nil || got.code < 500 || took > 5<<20 {
				t.Errorf("%s in %s: %d, %v, and %d MiB were allocated", what, contentType, got.code, err, took>>20)
			}
		}
	}
}
