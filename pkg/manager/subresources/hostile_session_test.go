package subresources

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// sessions are requests for each kind of connection into a Pod.
var sessions = map[string]string{"exec": "exec?command=sh&stdout=true", "attach": "attach?stdout=true", "portforward": "portforward"}

// inEachSession runs a test with each of sessions.
func inEachSession(t *testing.T, test func(t *testing.T, session string)) {
	t.Helper()
	for session := range sessions {
		t.Run(session, func(t *testing.T) { test(t, session) })
	}
}

// upgrade asks for a session as kubectl does, and returns the response, and the connection as far
// as it isn't read.
func (w *world) upgrade(session string) (*http.Response, *bufio.Reader, net.Conn) {
	w.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.api.URL, "http://"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		w.t.Fatal(err)
	}
	fmt.Fprintf(conn, "GET %s/namespaces/team/jobs/job/%s HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Protocol: v5\r\nAuthorization: Bearer the-user\r\nCookie: c=1\r\n\r\n", apiRoot, sessions[session])
	in := bufio.NewReader(conn)
	answer, err := http.ReadResponse(in, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return answer, in, conn
}

// notUpgraded expects an error in place of a session.
func (w *world) notUpgraded(session string, code int, text string) {
	w.t.Helper()
	answer, _, _ := w.upgrade(session)
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	var s metav1.Status
	if err != nil || json.Unmarshal(content, &s) != nil || answer.StatusCode != code || !strings.Contains(s.Message, text) {
		w.t.Errorf("%d %.300q, %v; want %d %q", answer.StatusCode, content, err, code, text)
	}
	if len(content) > 4096 {
		w.t.Errorf("an error of %d bytes", len(content))
	}
}

// A worker that refuses a session without an end of its words is cut off.
func TestARefusedSessionIsBounded(t *testing.T) {
	inEachSession(t, func(t *testing.T, session string) {
		for _, code := range []int{http.StatusOK, http.StatusBadRequest, http.StatusInternalServerError} {
			w := newWorld(t)
			sent := make(chan int, 1)
			w.worker.on(jobPodPath+session, func(out http.ResponseWriter, _ *http.Request) {
				out.WriteHeader(code)
				total, chunk := 0, strings.Repeat("x", 64<<10)
				for range 10_000 {
					n, err := io.WriteString(out, chunk)
					if total += n; err != nil {
						break
					}
				}
				sent <- total
			})
			want := http.StatusServiceUnavailable
			if code == http.StatusBadRequest {
				want = code
			}
			w.notUpgraded(session, want, `worker "w"`)
			if total := <-sent; total > 16<<20 { // what is in flight of a connection that is closed
				t.Errorf("code %d: %d bytes were taken", code, total)
			}
		}
	})
}

// A worker that refuses a session byte by byte holds it no longer than the timeout.
func TestARefusalThatDripsEnds(t *testing.T) {
	inEachSession(t, func(t *testing.T, session string) {
		w := newWorld(t, func(o *Options) { o.RequestTimeout = 500 * time.Millisecond })
		ended := make(chan struct{})
		w.worker.on(jobPodPath+session, func(out http.ResponseWriter, r *http.Request) {
			defer close(ended)
			out.WriteHeader(http.StatusBadRequest)
			for tick := time.NewTicker(10 * time.Millisecond); ; {
				fmt.Fprint(out, "x")
				_ = http.NewResponseController(out).Flush()
				select {
				case <-r.Context().Done():
					tick.Stop()
					return
				case <-tick.C:
				}
			}
		})
		w.notUpgraded(session, http.StatusGatewayTimeout, `worker "w" doesn't answer in time`)
		<-ended
	})
}

// hijack has the worker answer a session with these bytes, and returns what tells when the
// connection to it is closed.
func (w *world) hijack(session, answer string) (closed <-chan error) {
	done := make(chan error, 1)
	w.worker.on(jobPodPath+session, func(out http.ResponseWriter, _ *http.Request) {
		conn, rw, err := http.NewResponseController(out).Hijack()
		if err != nil {
			done <- err
			return
		}
		defer conn.Close()
		fmt.Fprint(rw, answer)
		_ = rw.Flush()
		_, err = io.Copy(io.Discard, rw)
		done <- err
	})
	return done
}

// A worker that switches to another protocol than the user's is refused, and its connection closed.
func TestAnotherProtocolIsRefused(t *testing.T) {
	inEachSession(t, func(t *testing.T, session string) {
		for answer, text := range map[string]string{
			"Connection: Upgrade\r\nUpgrade: gopher": `it switches to protocol "gopher", where "websocket" was requested`,
			"Connection: Upgrade\r\nX: y":            `it switches to protocol ""`,
		} {
			w := newWorld(t)
			closed := w.hijack(session, "HTTP/1.1 101 Switching Protocols\r\n"+answer+"\r\n\r\n")
			w.notUpgraded(session, http.StatusServiceUnavailable, text)
			select {
			case err := <-closed:
				if err != nil && !errors.Is(err, net.ErrClosed) && !strings.Contains(err.Error(), "reset by peer") {
					t.Errorf("%q: %v", answer, err)
				}
			case <-time.After(20 * time.Second):
				t.Errorf("%q: the worker's connection stays open", answer)
			}
		}
	})
}

// Before it switches protocols, a worker may send informational responses; no header of those
// passes, nor the text of its status line.
func TestInformationalResponsesDontPass(t *testing.T) {
	inEachSession(t, func(t *testing.T, session string) {
		w := newWorld(t)
		w.hijack(session, "HTTP/1.1 103 Early Hints\r\nSet-Cookie: stolen=1\r\nLink: </evil>\r\n\r\n"+
			"HTTP/1.1 101 \x1b[31mowned\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSet-Cookie: stolen=2\r\n\r\n")
		answer, _, _ := w.upgrade(session)
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusSwitchingProtocols || answer.Status != "101 Switching Protocols" {
			t.Errorf("%d %q", answer.StatusCode, answer.Status)
		}
		if h := answer.Header; h.Get("Set-Cookie") != "" || h.Get("Link") != "" || h.Get(WorkerHeader) != "w" || h.Get(PodHeader) != "job-a" {
			t.Errorf("the user got %v", h)
		}
	})
}

// A worker's code is the user's where that helps; its reason, on which clients act, never is.
func TestAWorkersReasonDoesntPass(t *testing.T) {
	w := newWorld(t)
	for _, reason := range []metav1.StatusReason{metav1.StatusReasonUnauthorized, "\x1b[2Jowned"} {
		w.worker.on(logPath, func(out http.ResponseWriter, _ *http.Request) {
			writeJSON(out, http.StatusBadRequest, failure(http.StatusBadRequest, reason, "no"))
		})
		got, err := w.get("log")
		var s metav1.Status
		if err != nil || json.Unmarshal([]byte(got.content), &s) != nil || s.Reason != metav1.StatusReasonBadRequest {
			t.Errorf("%q: %s, %v", reason, got.content, err)
		}
	}
}

// A worker can't have the manager wait by telling it when to ask again.
func TestAWorkerDoesntSayWhenToRetry(t *testing.T) {
	w := newWorld(t)
	w.worker.on(logPath, func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Retry-After", "86400")
		writeError(out, unavailable("later"))
	})
	got, err := w.get("log?follow=true")
	if err != nil || got.code != http.StatusServiceUnavailable || got.header.Get("Retry-After") != "" {
		t.Errorf("%+v, %v", got, err)
	}
}

// What a worker sends after the upgrade isn't interpreted: it passes as fast as the user reads it,
// is never gathered in memory, and ends with the user's connection.
func TestAnEndlessSessionEndsWithTheUser(t *testing.T) {
	inEachSession(t, func(t *testing.T, session string) {
		w := newWorld(t)
		sent := make(chan int, 1)
		w.worker.on(jobPodPath+session, func(out http.ResponseWriter, _ *http.Request) {
			conn, rw, err := http.NewResponseController(out).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			fmt.Fprint(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
			total, frame := 0, strings.Repeat("\xff", 1<<20) // headers of frames as large as can be
			for err = rw.Flush(); err == nil; total += len(frame) {
				_, err = io.WriteString(conn, frame)
			}
			sent <- total
		})
		answer, in, conn := w.upgrade(session)
		defer answer.Body.Close()
		if _, err := io.CopyN(io.Discard, in, 8<<20); err != nil {
			t.Fatal(err)
		}
		conn.Close()
		if total := <-sent; total > 64<<20 { // what is in flight
			t.Errorf("%d bytes were taken of a worker after the user had left", total)
		}
	})
}

// A session suits the Pod's container, or is refused before the worker is asked.
func TestSessionsSuitTheContainer(t *testing.T) {
	terminal := func(p *corev1.Pod) { p.Spec.Containers[0].Stdin, p.Spec.Containers[0].TTY = true, true }
	ended := func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }
	for name, row := range map[string]struct {
		pod  *corev1.Pod
		what string
		code int
		text string
	}{
		"no standard input":    {pod("job-a"), "attach?stdin=true", http.StatusBadRequest, `container "main" has no standard input`},
		"no terminal":          {pod("job-a"), "attach?stdout=true&tty=true", http.StatusBadRequest, `container "main" has no terminal`},
		"a terminal":           {pod("job-a", terminal), "attach?stdin=true&stdout=true", http.StatusBadRequest, `container "main" has a terminal`},
		"no stream":            {pod("job-a"), "attach", http.StatusBadRequest, "at least one must be true"},
		"an ended Pod":         {pod("job-a", ended), "portforward", http.StatusConflict, "is Succeeded: forwarding ports needs a running one"},
		"a port in the query":  {pod("job-a"), "portforward?ports=80", http.StatusBadRequest, `unknown parameter "ports"`},
		"ports of a container": {pod("job-a"), "portforward?container=main", http.StatusBadRequest, `unknown parameter "container"`},
	} {
		w := newWorld(t)
		w.worker.object(podsPath, &corev1.PodList{Items: []corev1.Pod{*row.pod}})
		got, err := w.get(row.what, func(r *http.Request) { r.Header.Set("Connection", "Upgrade"); r.Header.Set("Upgrade", "websocket") })
		var s metav1.Status
		if err != nil || json.Unmarshal([]byte(got.content), &s) != nil || got.code != row.code || !strings.Contains(s.Message, row.text) {
			t.Errorf("%s: %+v, %v; want %d %q", name, got, err, row.code, row.text)
		}
	}
	w := newWorld(t)
	w.refused("portforward", http.StatusBadRequest, "portforward: the connection must be upgraded")
}
