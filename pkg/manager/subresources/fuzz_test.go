package subresources

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/jobferry/jobferry/pkg/util/apistatus"
	"github.com/jobferry/jobferry/pkg/util/costtest"
)

// fuzzedRequest is what kubectl asks a worker for.
func fuzzedRequest() *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/api/v1/namespaces/team/pods/pod/exec", nil)
	r.Header.Set("Upgrade", "websocket")
	return r
}

// isPlain reports whether a terminal shows a text as it is, in one line.
func isPlain(s string) bool {
	return len(s) < 4096 && !strings.ContainsFunc(s, unicode.IsControl)
}

// Whatever a worker answers to a command, only the headers of the protocol pass, or an error in one
// line that is never one of authentication.
func FuzzUpgrade(f *testing.F) {
	f.Add([]byte("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSet-Cookie: a=b\r\n\r\n\x00\x01"))
	f.Add([]byte("HTTP/1.1 101 Gotcha\r\nUpgrade: other\r\n\r\n"))
	f.Add([]byte("HTTP/1.1 401 No\r\nContent-Length: 5\r\n\r\n\x1b[2J!"))
	f.Add([]byte("HTTP/1.1 400 No\r\n\r\n{\"kind\":\"Status\",\"code\":403,\"message\":\"\\u001b\",\"details\":{\"retryAfterSeconds\":9}}"))
	f.Fuzz(func(t *testing.T, answer []byte) {
		resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(answer)), fuzzedRequest())
		if err != nil {
			return
		}
		defer resp.Body.Close()
		if err := checkUpgrade(resp); err == nil {
			for name := range resp.Header {
				if len(pick(resp.Header, upgradeResponseHeaders)[name]) == 0 {
					t.Errorf("the header %q passes", name)
				}
			}
			return
		} else if s := apistatus.Of(fromWorker("w", "exec", err)); s.Code == http.StatusUnauthorized || s.Code == http.StatusForbidden ||
			s.Code < 400 || s.Code > 599 || !isPlain(s.Message) || s.Details != nil && s.Details.RetryAfterSeconds > 0 {
			t.Errorf("the user gets %+v", s)
		}
	})
}

// Whatever bytes a worker sends as a log, in whatever frames, the user gets these bytes, as plain
// text.
func FuzzLog(f *testing.F) {
	f.Add([]byte("line\nno newline"), 3)
	f.Add([]byte("\x00\xff\r\n5\r\nchunk"), 1)
	f.Fuzz(func(t *testing.T, log []byte, frame int) {
		w := httptest.NewRecorder()
		setHeaders(w, "text/plain; charset=utf-8")
		stall := newStallTimer(context.Background(), time.Minute)
		defer stall.end()
		frame = min(max(frame, 1), 4096)
		if err := copyFlushing(w, &frames{log, frame}, stall); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(w.Body.Bytes(), log) || w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%q becomes %q", log, w.Body.Bytes())
		}
	})
}

// frames is a log that arrives in pieces.
type frames struct {
	left []byte
	size int
}

func (f *frames) Read(into []byte) (int, error) {
	n := copy(into, f.left[:min(f.size, len(f.left))])
	f.left = f.left[n:]
	return bytes.NewReader(into[:n]).Read(into) // io.EOF when nothing is left
}

// Whatever a user asks for, it is understood, or refused as a bad request in one line.
func FuzzParameters(f *testing.F) {
	f.Add("command=sh&stdin=true&container=main&index=3")
	f.Add("tailLines=-1&sinceTime=x&follow=%00")
	f.Fuzz(func(t *testing.T, raw string) {
		query, err := url.ParseQuery(raw)
		if err != nil {
			return
		}
		_, _, ofLog := parseLog(query)
		errs := []error{ofLog}
		for _, s := range []session{execSession, attachSession, portForwardSession} {
			_, _, err := s.parse(fuzzedRequest(), query)
			errs = append(errs, err)
		}
		for _, err := range errs {
			var said apierrors.APIStatus
			if err != nil && (!errors.As(err, &said) || said.Status().Code != http.StatusBadRequest || !isPlain(said.Status().Message)) {
				t.Errorf("%q: %v", raw, err)
			}
		}
	})
}

// What a worker's answer becomes is bounded.
func FuzzCost(f *testing.F) {
	for _, kind := range []string{"PodList", "EventList"} {
		f.Add(`{"kind":"`+kind+`","apiVersion":"v1","items":[{}`, ",{}", "]}")
	}
	f.Add(`{"kind":"Pod","apiVersion":"v1","spec":{"containers":[{}`, ",{}", "]}}")
	f.Add(`{"kind":"Pod","apiVersion":"v1","metadata":{"finalizers":[""`, `,""`, "]}}")
	f.Add(`{"kind":"Pod","apiVersion":"v1","x":`, "[", "")
	costtest.Check(f, 256<<10, 300, func(text string) {
		resp, err := boundObject(&http.Response{Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(text))})
		if err != nil {
			panic(err)
		}
		if data, err := io.ReadAll(resp.Body); err == nil {
			_, _ = apiruntime.Decode(scheme.Codecs.UniversalDeserializer(), data) // whatever it is
		}
		_ = resp.Body.Close()
	})
}
