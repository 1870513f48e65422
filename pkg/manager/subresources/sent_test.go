package subresources

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// ofWebSocket is a frame of a server with some first byte.
func ofWebSocket(first byte, content string) string {
	length := []byte{127}
	switch n := len(content); {
	case n < 126:
		length = []byte{byte(n)}
	case n < 1<<16:
		length = binary.BigEndian.AppendUint16([]byte{126}, uint16(n))
	default:
		length = binary.BigEndian.AppendUint64(length, uint64(n))
	}
	return string([]byte{first}) + string(length) + content
}

const binaryMessage, continues, unfinished, compressed, ping = 0x82, 0x80, 0x02, 0xc2, 0x89

// message is a whole one of a channel.
func message(channel byte, content string) string {
	return ofWebSocket(binaryMessage, string([]byte{channel})+content)
}

// ofSPDY is a frame's header, with that content.
func ofSPDY(first uint32, content string) string {
	return string(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, first), uint32(len(content)))) + content
}

// What a worker sends in a session passes as long as kubectl, or the hub's API server, holds little
// of it.
func TestSessionsAreBounded(t *testing.T) {
	command := http.Header{"Upgrade": {"websocket"}, "Sec-Websocket-Protocol": {"v5.channel.k8s.io"}}
	inText := http.Header{"Upgrade": {"websocket"}, "Sec-Websocket-Protocol": {"base64.channel.k8s.io"}}
	tunnel := http.Header{"Upgrade": {"websocket"}, "Sec-Websocket-Protocol": {"SPDY/3.1+portforward.k8s.io"}}
	bySPDY := http.Header{"Upgrade": {"SPDY/3.1"}, "X-Stream-Protocol-Version": {"v4.channel.k8s.io"}}
	ports := http.Header{"Upgrade": {"SPDY/3.1"}, "X-Stream-Protocol-Version": {"portforward.k8s.io"}}
	const reply, data, kilobytes = 1<<31 | 3<<16 | 2, 1, 32 << 10
	chunk := strings.Repeat("x", kilobytes)
	for name, row := range map[string]struct {
		header http.Header
		sent   string
		cut    bool
	}{
		"what a command prints":      {command, strings.Repeat(message(1, chunk), 100) + message(3, `{"status":"Success"}`), false},
		"a message of megabytes":     {command, message(1, strings.Repeat(chunk, 100)), false},
		"in many frames":             {command, ofWebSocket(unfinished, "\x01"+chunk) + strings.Repeat(ofWebSocket(continues, chunk), 100), false},
		"pings between":              {command, ofWebSocket(unfinished, "\x01") + ofWebSocket(ping, "\x03") + ofWebSocket(continues, strings.Repeat(chunk, 9)), false},
		"empty messages":             {command, strings.Repeat(ofWebSocket(binaryMessage, ""), 1000) + message(1, chunk), false},
		"a long error":               {command, message(3, strings.Repeat(chunk, 3)), true},
		"an error in many messages":  {command, strings.Repeat(message(3, "x"), maxSessionError+1), true},
		"an error in many frames":    {command, ofWebSocket(unfinished, "\x03") + strings.Repeat(ofWebSocket(continues, chunk), 3), true},
		"an error after its channel": {command, ofWebSocket(unfinished, "") + strings.Repeat(ofWebSocket(continues, "\x03"+chunk), 3), true},
		"an error in text":           {inText, message('3', strings.Repeat(chunk, 3)), true},
		"a compressed frame":         {command, ofWebSocket(compressed, "\x01x"), true},
		"a masked frame":             {command, "\x82\xfe\x00\x01", true},
		"a ping of kilobytes":        {command, ofWebSocket(ping, chunk), true},
		"ports":                      {tunnel, strings.Repeat(ofWebSocket(binaryMessage, ofSPDY(data, chunk)), 100), false},
		"frames over messages":       {tunnel, strings.Repeat(ofWebSocket(binaryMessage, ofSPDY(data, chunk)[:5])+ofWebSocket(binaryMessage, ofSPDY(data, chunk)[5:]), 9), false},
		"a frame of megabytes":       {tunnel, ofWebSocket(binaryMessage, ofSPDY(data, strings.Repeat(chunk, 100))), true},
		"a reply":                    {tunnel, ofWebSocket(binaryMessage, ofSPDY(reply, chunk[:100])), false},
		"long headers":               {tunnel, ofWebSocket(binaryMessage, ofSPDY(reply, chunk)), true},
		"an error by SPDY":           {bySPDY, ofSPDY(reply, chunk[:100]) + strings.Repeat(ofSPDY(data, chunk), 3), true},
		"a short one":                {bySPDY, ofSPDY(data, chunk), false},
		"what's printed by SPDY":     {bySPDY, strings.Repeat(ofSPDY(data+4, chunk), 100), false},
		"ports by SPDY":              {ports, strings.Repeat(ofSPDY(data, chunk), 100), false},
		"long headers by SPDY":       {ports, ofSPDY(reply, chunk), true},
	} {
		for pieces, read := range map[string]func(io.Reader) io.Reader{
			"whole": func(r io.Reader) io.Reader { return r }, "halves": iotest.HalfReader, "bytes": iotest.OneByteReader,
		} {
			resp := &http.Response{Header: row.header, Body: struct {
				io.Reader
				io.WriteCloser
			}{Reader: read(strings.NewReader(row.sent))}}
			boundSession(resp)
			passed, err := io.ReadAll(resp.Body)
			if errors.Is(err, errSessionSent) != row.cut || !strings.HasPrefix(row.sent, string(passed)) || !row.cut && len(passed) < len(row.sent) {
				t.Errorf("%s, in %s: %d of %d bytes pass, %v", name, pieces, len(passed), len(row.sent), err)
			}
		}
	}
}

// A worker that never ends a session's error is cut off.
func TestAnErrorWithoutAnEnd(t *testing.T) {
	for _, session := range []string{"exec", "attach"} {
		w := newWorld(t)
		w.hijack(session, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Protocol: v5.channel.k8s.io\r\n\r\n"+
			strings.Repeat(message(3, strings.Repeat("x", 1<<10)), 4<<10))
		answer, in, _ := w.upgrade(session)
		defer answer.Body.Close()
		got, err := io.ReadAll(in)
		if answer.StatusCode != http.StatusSwitchingProtocols || len(got) > 2*maxSessionError {
			t.Errorf("%s: %s, %d bytes, %v", session, answer.Status, len(got), err)
		}
	}
}

// What Kubernetes' own SPDY sends passes.
func TestHonestSessionsBySPDY(t *testing.T) {
	const size = 4 << 20
	here, there := net.Pipe()
	made := make(chan httpstream.Stream, 2)
	server, err := spdy.NewServerConnection(there, func(s httpstream.Stream, replied <-chan struct{}) error {
		go func() {
			<-replied
			made <- s
		}()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	client, err := spdy.NewClientConnection(bySession{here, &boundedSession{here, &spdyFrames{hasError: true}}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for i, kind := range []string{corev1.StreamTypeError, corev1.StreamTypeStdout} {
		stream, err := client.CreateStream(http.Header{corev1.StreamType: {kind}})
		if err != nil {
			t.Fatal(err)
		}
		length := []int{1000, size}[i]
		go func() {
			s := <-made
			_, _ = io.Copy(s, io.LimitReader(endless{}, int64(length)))
			_ = s.Close()
		}()
		if n, err := io.Copy(io.Discard, stream); err != nil || n != int64(length) {
			t.Errorf("%s: %d bytes, %v", kind, n, err)
		}
	}
}

// bySession is a connection of which is read what passes.
type bySession struct {
	net.Conn
	session *boundedSession
}

func (b bySession) Read(p []byte) (int, error) { return b.session.Read(p) }

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }
