package plugin

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"
)

// The command prints an address, serves there what the user may see, and ends when it's
// interrupted. Where not all namespaces are allowed, it shows the context's.
func TestDashboard(t *testing.T) {
	for _, row := range []struct {
		name      string
		args      []string
		forbidden bool
		want      string
	}{
		{"all namespaces are allowed", nil, false, `<span class="hubname">hub</span></p>`},
		{"not all are allowed", nil, true, `<span class="faint">/ team-a</span>`},
		{"one is named", []string{"-n", "team-b"}, false, `<span class="faint">/ team-b</span>`},
	} {
		h := newHub(t)
		h.answers["/apis/batch/v1/jobs"] = &batchv1.JobList{}
		if row.forbidden {
			h.refuse("/apis/batch/v1/jobs", http.StatusForbidden, metav1.StatusReasonForbidden, "not all", nil)
		}
		address, stop := h.dashboard(row.args...)
		if body := browse(t, address); !strings.Contains(body, row.want) {
			t.Errorf("%s: %q is missing in\n%s", row.name, row.want, body)
		}
		if code := stop(); code != 0 {
			t.Errorf("%s: exit code %d", row.name, code)
		}
	}
}

func TestDashboardWithoutHub(t *testing.T) {
	h := newHub(t)
	h.server.Close()
	if o := h.run("dashboard"); o.code != 1 || !strings.Contains(o.err, "connection refused") {
		t.Errorf("%+v", o)
	}
}

// dashboard starts the command, and returns its address, and how to interrupt it.
func (h *fakeHub) dashboard(args ...string) (address string, stop func() int) {
	h.t.Helper()
	ctx, interrupt := context.WithCancel(h.t.Context())
	printed, out := io.Pipe()
	code := make(chan int, 1)
	go func() {
		streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: out, ErrOut: io.Discard}
		code <- Run(ctx, append([]string{"--kubeconfig", h.kubeconfig(), "dashboard"}, args...), streams, clocktesting.NewFakePassiveClock(now))
		_ = out.Close()
	}()
	line, err := bufio.NewReader(printed).ReadString('\n')
	if err != nil {
		h.t.Fatal(err)
	}
	return strings.TrimSpace(line), func() int {
		interrupt()
		return <-code
	}
}

// browse opens an address as a browser does.
func browse(t *testing.T, address string) string {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := (&http.Client{Jar: jar}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v\n%s", response.Status, err, body)
	}
	return string(body)
}
