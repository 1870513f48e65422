package access

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	goruntime "runtime"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// A proxy's error, which has no kind, is told as one.
func TestErrorsOfAProxyAreTold(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"message":"not from here","traceID":"7e10345"}`)
	}))
	defer server.Close()
	worker, err := NewWorkerClient(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := UID(t.Context(), worker); !apierrors.IsForbidden(err) {
		t.Errorf("got %v", err)
	}
}

// What a worker that is registered answers takes little memory of the admin's machine, and little
// time.
func TestAWorkersAnswersAreBounded(t *testing.T) {
	list := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Raw: bytes.Repeat([]byte{2<<3 | 2, 0}, 100_000)}
	proto, err := list.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	pods := func(items string) string { return `{"kind":"PodList","apiVersion":"v1","items":[` + items + `]}` }
	for name, row := range map[string]struct{ contentType, body string }{
		"honest":                {"application/json", `{"kind":"Namespace","apiVersion":"v1","metadata":{"uid":"1"}}`},
		"honest, with a commit": {"application/json", `{"kind":"Namespace","apiVersion":"v1","metadata":{"uid":"1","labels":{"git-commit":"7e10345"}}}`},
		"without a type":        {"", "k8s\x00" + string(proto)},
		"protobuf":              {"application/vnd.kubernetes.protobuf", "k8s\x00" + string(proto)},
		"YAML":                  {"application/yaml", "kind: PodList\napiVersion: v1\nitems:\n" + strings.Repeat("-\n", 100_000)},
		"many values":           {"application/json", pods(strings.Repeat("{},", 100_000) + "{}")},
		"nulls":                 {"application/json", `{"kind":"CronJobList","apiVersion":"batch/v1","items":[` + strings.Repeat("null,", 29_900) + "null]}"},
		"no end":                {"application/json", strings.Repeat(" ", 100<<20)},
		"costly":                {"application/json", pods(`{"spec":{"containers":[{"resources":{"limits":{"cpu":"123456789012345678901e999999999"}}}]}}`)},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = []string{row.contentType}
			_, _ = io.Copy(w, strings.NewReader(row.body)) // it isn't read to its end
		}))
		worker, err := NewWorkerClient(&rest.Config{Host: server.URL})
		if err != nil {
			t.Fatal(err)
		}
		var before, after goruntime.MemStats
		goruntime.ReadMemStats(&before)
		uid, err := UID(t.Context(), worker)
		goruntime.ReadMemStats(&after)
		server.Close()
		if took := after.TotalAlloc - before.TotalAlloc; (err == nil) != strings.HasPrefix(name, "honest") || took > 40<<20 {
			t.Errorf("%s: UID %q, %v, and %d MiB were allocated", name, uid, err, took>>20)
		}
	}
}
