package subresources

import (
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"strings"
)

// What a worker sends in a session is decoded by kubectl, or by the hub's API server, neither of
// which bounds it: they read the session's error to its end, and hold frames of SPDY that wait, 250
// of them. So the manager looks at how long frames are, and ends a session that has too much.
const (
	// maxSessionError bounds the error at a session's end.
	maxSessionError = 64 << 10
	// maxSPDYControl bounds what SPDY sends beside the data: its headers are compressed, and an API
	// server sends none. maxSPDYData bounds a frame of data: containers' runtimes send 32 KiB at once.
	maxSPDYControl, maxSPDYData = 512, 128 << 10
)

var errSessionSent = errors.New("a session has an error or a frame that is too long, or is malformed")

// sentFrames takes what a worker sends, piece by piece.
type sentFrames interface{ take(sent []byte) error }

// framesOf are those of the protocol to which a response switches; nil: it's neither WebSocket, as
// kubectl uses it, nor SPDY.
func framesOf(resp *http.Response) sentFrames {
	switch protocol := resp.Header.Get("Sec-WebSocket-Protocol"); {
	case strings.HasPrefix(resp.Header.Get("Upgrade"), "SPDY/"):
		return &spdyFrames{hasError: strings.HasSuffix(resp.Header.Get("X-Stream-Protocol-Version"), "channel.k8s.io")}
	case strings.HasSuffix(protocol, "channel.k8s.io"):
		return &webSocket{content: &channels{}}
	case strings.HasPrefix(protocol, "SPDY/"):
		return &webSocket{content: &spdyFrames{}}
	default:
		return nil
	}
}

// boundSession has the frames of a session looked at.
func boundSession(resp *http.Response) {
	if conn, is := resp.Body.(io.ReadWriteCloser); is {
		if frames := framesOf(resp); frames != nil {
			resp.Body = &boundedSession{conn, frames}
		}
	}
}

// boundedSession is a connection to a worker whose frames are looked at as they're read.
type boundedSession struct {
	io.ReadWriteCloser
	frames sentFrames
}

// Read implements io.Reader.
func (s *boundedSession) Read(p []byte) (int, error) {
	n, err := s.ReadWriteCloser.Read(p)
	if tooLong := s.frames.take(p[:n]); tooLong != nil {
		return 0, tooLong
	}
	return n, err //nolint:wrapcheck // it's the connection's own
}

// CloseWrite ends what the user sends, as the connection itself does it.
func (s *boundedSession) CloseWrite() error {
	if half, is := s.ReadWriteCloser.(interface{ CloseWrite() error }); is {
		return half.CloseWrite()
	}
	return s.Close()
}

// header gathers the bytes of a frame's header.
type header struct {
	bytes [10]byte
	have  int
}

// take moves bytes into the header until it has so many, and returns the rest.
func (h *header) take(sent []byte, size int) (rest []byte, complete bool) {
	n := copy(h.bytes[h.have:size], sent)
	h.have += n
	return sent[n:], h.have == size
}

// webSocket passes what is in the messages of a server (RFC 6455).
type webSocket struct {
	header
	left uint64 // of the frame
	// isControl: the frame is a ping, or the like.
	isControl bool
	content   interface {
		sentFrames
		// begin is called when a message begins.
		begin()
	}
}

func (w *webSocket) take(sent []byte) error {
	for len(sent) > 0 {
		if w.left > 0 {
			n := min(uint64(len(sent)), w.left)
			if !w.isControl {
				if err := w.content.take(sent[:n]); err != nil {
					return err
				}
			}
			sent, w.left = sent[n:], w.left-n
			continue
		}
		size := 2
		if w.have >= size {
			size += moreLength[w.bytes[1]]
		}
		var complete bool
		if sent, complete = w.header.take(sent, size); complete && (size > 2 || moreLength[w.bytes[1]] == 0) {
			if err := w.start(size); err != nil {
				return err
			}
		}
	}
	return nil
}

// moreLength is how many bytes follow the second one of a header, which say how long the frame is.
var moreLength = map[byte]int{126: 2, 127: 8}

// start starts a frame, whose header is complete.
func (w *webSocket) start(size int) error {
	const reserved, opcode, control, masked = 0x70, 0x0f, 0x08, 0x80
	if w.bytes[0]&reserved != 0 || w.bytes[1]&masked != 0 {
		return errSessionSent // it's compressed, or from no server
	}
	switch w.have = 0; size {
	case 2:
		w.left = uint64(w.bytes[1])
	case 4:
		w.left = uint64(binary.BigEndian.Uint16(w.bytes[2:]))
	default:
		w.left = binary.BigEndian.Uint64(w.bytes[2:])
	}
	w.isControl = w.bytes[0]&control != 0
	if w.isControl && w.left >= 126 {
		return errSessionSent
	}
	if w.bytes[0]&opcode != 0 && !w.isControl { // zero continues a message
		w.content.begin()
	}
	return nil
}

// channels are those of a command's streams: the first byte of each message says which.
type channels struct {
	begun, isError bool
	errorBytes     int
}

func (c *channels) begin() { c.begun, c.isError = true, false }

func (c *channels) take(sent []byte) error {
	const ofError, ofErrorInText = 3, '3'
	if c.begun && len(sent) > 0 {
		c.begun, c.isError, sent = false, sent[0] == ofError || sent[0] == ofErrorInText, sent[1:]
	}
	if c.isError {
		c.errorBytes += len(sent)
	}
	if c.errorBytes > maxSessionError {
		return errSessionSent
	}
	return nil
}

// spdyFrames are those of SPDY/3.1.
type spdyFrames struct {
	header
	left uint32 // of the frame
	// hasError: the first stream is that of the error, as clients of a command make it. Of forwarded
	// ports, each has one.
	hasError   bool
	errorBytes uint32
}

func (*spdyFrames) begin() {}

func (f *spdyFrames) take(sent []byte) error {
	for len(sent) > 0 {
		if f.left > 0 {
			n := uint32(min(uint64(len(sent)), uint64(f.left))) //nolint:gosec // not more than f.left
			sent, f.left = sent[n:], f.left-n
			continue
		}
		var complete bool
		if sent, complete = f.header.take(sent, 8); complete {
			f.have = 0
			if err := f.start(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *spdyFrames) start() error {
	const control, errorStream, length = 1 << 31, 1, 1<<24 - 1
	first := binary.BigEndian.Uint32(f.bytes[:])
	f.left = binary.BigEndian.Uint32(f.bytes[4:]) & length
	most := uint32(maxSPDYData)
	if first&control != 0 {
		most = maxSPDYControl
	} else if f.hasError && first == errorStream {
		f.errorBytes += f.left
	}
	if f.left > most || f.errorBytes > maxSessionError {
		return errSessionSent
	}
	return nil
}
