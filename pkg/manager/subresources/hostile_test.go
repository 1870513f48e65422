package subresources

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	podsPath   = "/api/v1/namespaces/team/pods"
	jobPodPath = podsPath + "/job-a/"
	logPath    = jobPodPath + "log"
	execPath   = jobPodPath + "exec"
)

func TestAnswersOfAWorkerAreBounded(t *testing.T) {
	w := newWorld(t)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") }))
	defer elsewhere.Close()
	w.worker.on(logPath, http.RedirectHandler(elsewhere.URL, http.StatusFound).ServeHTTP)
	w.refused("log", http.StatusServiceUnavailable, `worker "w" fails`)

	endless := strings.Repeat("x", 1<<20)
	w.worker.on(logPath, func(out http.ResponseWriter, _ *http.Request) {
		out.WriteHeader(http.StatusBadRequest)
		for range 1000 {
			if _, err := io.WriteString(out, endless); err != nil {
				return
			}
		}
		t.Error("an error of 1 GB was read to its end")
	})
	if got, _ := w.get("log"); len(got.content) > 4096 {
		t.Errorf("an error of %d bytes", len(got.content))
	}

	w.worker.on(podsPath, func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Content-Type", "application/json")
		fmt.Fprint(out, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"`)
		for range 1000 {
			if _, err := io.WriteString(out, endless); err != nil {
				return
			}
		}
		t.Error("a list of 1 GB was read to its end")
	})
	w.refused("pods", http.StatusBadGateway, "larger than 4 MiB")
}

// A refusal of the manager isn't one of the user, and what a worker says can't command a terminal.
func TestErrorsOfAWorker(t *testing.T) {
	rows := map[string]struct {
		said metav1.Status
		code int
		text string
	}{
		"forbidden":    {failure(http.StatusForbidden, "Forbidden", "no \x1b[31mway"), http.StatusServiceUnavailable, "refuses this to the hub"},
		"unauthorized": {failure(http.StatusUnauthorized, "Unauthorized", "who?"), http.StatusServiceUnavailable, "refuses this to the hub"},
		"too early":    {failure(http.StatusBadRequest, "BadRequest", "container is waiting\x07 to start"), http.StatusBadRequest, `worker "w": container is waiting to start`},
		"broken":       {failure(http.StatusInternalServerError, "InternalError", "etcd"), http.StatusServiceUnavailable, "with 500: etcd"},
	}
	w := newWorld(t)
	for name, row := range rows {
		t.Log(name)
		w.worker.on(logPath, func(out http.ResponseWriter, _ *http.Request) { writeJSON(out, int(row.said.Code), row.said) })
		w.refused("log", row.code, row.text)
	}
}

func TestHeadersDontPass(t *testing.T) {
	w := newWorld(t)
	w.worker.on(logPath, func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Set-Cookie", "stolen=1")
		out.Header().Set("Content-Type", "text/html")
		fmt.Fprint(out, "<script>")
	})
	got, err := w.get("log", func(r *http.Request) {
		r.Header.Set("Authorization", "Bearer the-user")
		r.Header.Set("Cookie", "session=1")
		r.Header.Set("Impersonate-User", "admin")
	})
	if err != nil || got.content != "<script>" {
		t.Fatalf("%q, %v", got.content, err)
	}
	if h := got.header; h.Get("Set-Cookie") != "" || !strings.HasPrefix(h.Get("Content-Type"), "text/plain") || h.Get(WorkerHeader) != "w" {
		t.Errorf("the user got %v", h)
	}
	for _, h := range w.worker.heard() {
		if h.Get("Authorization") != "Bearer the-manager" || h.Get("Cookie") != "" || h.Get("Impersonate-User") != "" {
			t.Errorf("the worker got %v", h)
		}
	}
}

func TestUpgradePassesOnlyTheProtocol(t *testing.T) {
	w := newWorld(t)
	w.worker.on(execPath, func(out http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("container") != "main" || r.URL.Query().Get("stdout") != "true" {
			t.Errorf("asked for %s", r.URL)
		}
		conn, rw, err := http.NewResponseController(out).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprint(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSet-Cookie: stolen=1\r\nSec-WebSocket-Protocol: v5\r\n\r\n")
		_ = rw.Flush()
		line, _ := rw.ReadString('\n')
		fmt.Fprintf(rw, "heard %s", line)
		_ = rw.Flush()
	})
	answer, in, conn := w.upgrade("exec")
	if answer.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%v", answer)
	}
	answer.Body.Close()
	if h := answer.Header; h.Get("Set-Cookie") != "" || h.Get("Sec-Websocket-Protocol") != "v5" || h.Get(PodHeader) != "job-a" {
		t.Errorf("the user got %v", h)
	}
	fmt.Fprint(conn, "hello\n")
	if line, err := in.ReadString('\n'); line != "heard hello\n" {
		t.Errorf("%q, %v", line, err)
	}
	for _, h := range w.worker.heard() {
		if h.Get("Authorization") != "Bearer the-manager" || h.Get("Cookie") != "" {
			t.Errorf("the worker got %v", h)
		}
	}
}

func TestStallsAndBreaks(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.StallTimeout = 100 * time.Millisecond })
	w.worker.on(logPath, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	w.refused("log", http.StatusGatewayTimeout, "doesn't answer in time")

	w.worker.on(logPath, func(out http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(out, "first")
		_ = http.NewResponseController(out).Flush()
		<-r.Context().Done()
	})
	if got, err := w.get("log"); err == nil || got.content != "first\n" {
		t.Errorf("a log that stalls: %q, %v", got.content, err)
	}
	w.worker.on(logPath, func(out http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(out, "first")
		_ = http.NewResponseController(out).Flush()
		panic(http.ErrAbortHandler)
	})
	if got, err := w.get("log"); err == nil || got.content != "first\n" {
		t.Errorf("a log that breaks off: %q, %v", got.content, err)
	}
}

// pager reads the first page, and the rest when it's asked to.
type pager struct {
	*httptest.ResponseRecorder
	pause func()
}

func (p pager) Write(content []byte) (int, error) {
	p.pause()
	return p.ResponseRecorder.Write(content)
}

// A client may be slower than a worker may be silent, as a pager is.
func TestSlowClient(t *testing.T) {
	const within = 20 * time.Millisecond
	stall := newStallTimer(t.Context(), within)
	defer stall.end()
	reader := pager{httptest.NewRecorder(), func() {
		select {
		case <-stall.ctx.Done():
		case <-time.After(3 * within):
		}
	}}
	if err := copyFlushing(reader, strings.NewReader("a log"), stall); err != nil || stall.ctx.Err() != nil {
		t.Errorf("%v, %v", err, stall.ctx.Err())
	}
	if got := reader.Body.String(); got != "a log" {
		t.Errorf("%q", got)
	}
}

// When the reader of a log goes, so does the request to the worker.
func TestFollowEndsWithTheClient(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.StallTimeout = time.Millisecond })
	gone := make(chan struct{})
	w.worker.on(logPath, func(out http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(out, "first")
		_ = http.NewResponseController(out).Flush()
		<-r.Context().Done()
		close(gone)
	})
	ctx, cancel := context.WithCancel(context.Background())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, w.api.URL+apiRoot+"/namespaces/team/jobs/job/log?follow=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := w.api.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if line, err := bufio.NewReader(answer.Body).ReadString('\n'); err != nil {
		t.Fatalf("%q, %v", line, err)
	}
	cancel()
	<-gone
}

// Pods are copied chunk by chunk; those that only look like the Job's are left out.
func TestPodsByPages(t *testing.T) {
	w := newWorld(t)
	stranger := pod("stranger", func(p *corev1.Pod) { p.OwnerReferences = nil })
	w.worker.on(podsPath, func(out http.ResponseWriter, r *http.Request) {
		list := corev1.PodList{Items: []corev1.Pod{*pod("job-b"), *stranger}}
		if r.URL.Query().Get("continue") == "" {
			list = corev1.PodList{ListMeta: metav1.ListMeta{Continue: "more", ResourceVersion: "5"}, Items: []corev1.Pod{*stranger, *pod("job-a")}}
		}
		writeJSON(out, http.StatusOK, list)
	})
	got, err := w.get("pods")
	var list corev1.PodList
	if err != nil || got.code != http.StatusOK || json.Unmarshal([]byte(got.content), &list) != nil {
		t.Fatalf("%d, %q, %v", got.code, got.content, err)
	}
	if len(list.Items) != 2 || list.Items[0].Name != "job-a" || list.Items[1].Name != "job-b" || list.ResourceVersion != "5" || list.Kind != "PodList" {
		t.Errorf("%s", got.content)
	}

	w.worker.on(podsPath, func(out http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("continue") != "" {
			writeError(out, unavailable("no more"))
			return
		}
		writeJSON(out, http.StatusOK, corev1.PodList{ListMeta: metav1.ListMeta{Continue: "more"}, Items: []corev1.Pod{*pod("job-a")}})
	})
	if got, err := w.get("pods"); err == nil {
		t.Errorf("half a list seems complete: %s", got.content)
	}
}

// Names that no API server stores don't reach users: a shell may run them, and a terminal obeys
// them.
func TestMalformedNamesArentPassedOn(t *testing.T) {
	w := newWorld(t)
	const shell = "$(touch${IFS}file)"
	w.worker.object(podsPath, corev1.PodList{Items: []corev1.Pod{
		*pod("job-a"), *pod(shell), *pod("job-\x1b[2J"),
		*pod("job-b", func(p *corev1.Pod) { p.Spec.Containers = []corev1.Container{{Name: shell}} }),
		*pod("job-c", func(p *corev1.Pod) { p.Labels = map[string]string{shell: "x"} }),
	}})
	got, err := w.get("pods")
	var list corev1.PodList
	if err != nil || json.Unmarshal([]byte(got.content), &list) != nil || len(list.Items) != 1 || list.Items[0].Name != "job-a" {
		t.Errorf("%d, %q, %v", got.code, got.content, err)
	}
	about := corev1.ObjectReference{Kind: "Job", UID: mirrorUID}
	w.worker.object("/api/v1/namespaces/team/events", corev1.EventList{Items: []corev1.Event{
		{ObjectMeta: metav1.ObjectMeta{Name: "job.1"}, InvolvedObject: about}, {ObjectMeta: metav1.ObjectMeta{Name: shell}, InvolvedObject: about},
	}})
	got, err = w.get("events")
	var events corev1.EventList
	if err != nil || json.Unmarshal([]byte(got.content), &events) != nil || len(events.Items) != 1 || events.Items[0].Name != "job.1" {
		t.Errorf("%d, %q, %v", got.code, got.content, err)
	}
}

func TestNoLogBeforeThereIsANode(t *testing.T) {
	w := newWorld(t)
	w.worker.object(podsPath, corev1.PodList{Items: []corev1.Pod{*pod("job-a", phase(corev1.PodPending), func(p *corev1.Pod) { p.Spec.NodeName = "" })}})
	w.refused("log", http.StatusConflict, "isn't scheduled on a node yet")
}
