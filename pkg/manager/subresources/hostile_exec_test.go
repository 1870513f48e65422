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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// upgrade asks for a command as kubectl does, and returns the response, and the connection as far as
// it isn't read.
func (w *world) upgrade() (*http.Response, *bufio.Reader, net.Conn) {
	w.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.api.URL, "http://"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		w.t.Fatal(err)
	}
	fmt.Fprintf(conn, "GET %s/namespaces/team/jobs/job/exec?command=sh&stdout=true HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Protocol: v5\r\nAuthorization: Bearer the-user\r\nCookie: c=1\r\n\r\n", apiRoot)
	in := bufio.NewReader(conn)
	answer, err := http.ReadResponse(in, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return answer, in, conn
}

// notUpgraded expects an error in place of a command.
func (w *world) notUpgraded(code int, text string) {
	w.t.Helper()
	answer, _, _ := w.upgrade()
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

// A worker that refuses a command without an end of its words is cut off.
func TestARefusedCommandIsBounded(t *testing.T) {
	for _, code := range []int{http.StatusOK, http.StatusBadRequest, http.StatusInternalServerError} {
		w := newWorld(t)
		sent := make(chan int, 1)
		w.worker.on(execPath, func(out http.ResponseWriter, _ *http.Request) {
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
		w.notUpgraded(want, `worker "w"`)
		if total := <-sent; total > 16<<20 { // what is in flight of a connection that is closed
			t.Errorf("code %d: %d bytes were taken", code, total)
		}
	}
}

// A worker that refuses a command byte by byte holds it no longer than the timeout.
func TestARefusalThatDripsEnds(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.RequestTimeout = 500 * time.Millisecond })
	ended := make(chan struct{})
	w.worker.on(execPath, func(out http.ResponseWriter, r *http.Request) {
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
	w.notUpgraded(http.StatusGatewayTimeout, `worker "w" doesn't answer in time`)
	<-ended
}

// hijack has the worker answer a command with these bytes, and returns what tells when the
// connection to it is closed.
func (w *world) hijack(answer string) (closed <-chan error) {
	done := make(chan error, 1)
	w.worker.on(execPath, func(out http.ResponseWriter, _ *http.Request) {
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
	for answer, text := range map[string]string{
		"Connection: Upgrade\r\nUpgrade: gopher": `it switches to protocol "gopher", where "websocket" was requested`,
		"Connection: Upgrade\r\nX: y":            `it switches to protocol ""`,
	} {
		w := newWorld(t)
		closed := w.hijack("HTTP/1.1 101 Switching Protocols\r\n" + answer + "\r\n\r\n")
		w.notUpgraded(http.StatusServiceUnavailable, text)
		select {
		case err := <-closed:
			if err != nil && !errors.Is(err, net.ErrClosed) && !strings.Contains(err.Error(), "reset by peer") {
				t.Errorf("%q: %v", answer, err)
			}
		case <-time.After(20 * time.Second):
			t.Errorf("%q: the worker's connection stays open", answer)
		}
	}
}

// Before it switches protocols, a worker may send informational responses; no header of those
// passes, nor the text of its status line.
func TestInformationalResponsesDontPass(t *testing.T) {
	w := newWorld(t)
	w.hijack("HTTP/1.1 103 Early Hints\r\nSet-Cookie: stolen=1\r\nLink: </evil>\r\n\r\n" +
		"HTTP/1.1 101 \x1b[31mowned\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSet-Cookie: stolen=2\r\n\r\n")
	answer, _, _ := w.upgrade()
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusSwitchingProtocols || answer.Status != "101 Switching Protocols" {
		t.Errorf("%d %q", answer.StatusCode, answer.Status)
	}
	if h := answer.Header; h.Get("Set-Cookie") != "" || h.Get("Link") != "" || h.Get(WorkerHeader) != "w" || h.Get(PodHeader) != "job-a" {
		t.Errorf("the user got %v", h)
	}
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
