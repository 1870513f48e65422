package dispatchedjobs

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// NewClient makes a client of the hub that decodes just what is read of Jobs and events.
func NewClient(config *rest.Config) (kubernetes.Interface, error) {
	config = rest.CopyConfig(config)
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf
	// HTTP/2 would hold 4 MiB of each answer that isn't read yet.
	config.NextProtos = []string{"http/1.1"}
	config.Wrap(func(send http.RoundTripper) http.RoundTripper { return slim{send} })
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("dispatchedjobs: %w", err)
	}
	return client, nil
}

// slim keeps parts of answers.
type slim struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (s slim) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := s.RoundTripper.RoundTrip(req)
	if err != nil || resp.StatusCode != http.StatusOK {
		return resp, err //nolint:wrapcheck // it's the transport's own
	}
	body := resp.Body
	media, params, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")) // unreadable: not protobuf
	switch {
	case media != runtime.ContentTypeProtobuf:
		_ = body.Close() // nothing of it is used
		return nil, errMalformed
	case params["stream"] == "watch":
		resp.Body = &slimFrames{Closer: body, from: bufio.NewReader(body)}
		return resp, nil
	}
	defer func() { _ = body.Close() }() // what matters has been read
	content, err := (&slimmer{from: bufio.NewReader(body)}).object(toTheEnd)
	if err != nil {
		return nil, err
	}
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(content)), int64(len(content))
	return resp, nil
}

// slimFrames is the body of a watch: its events, each after its length in four bytes.
type slimFrames struct {
	io.Closer
	from  *bufio.Reader
	frame []byte // that isn't read yet
}

// Read implements io.Reader.
func (f *slimFrames) Read(p []byte) (int, error) {
	if len(f.frame) == 0 {
		var length [4]byte
		if _, err := io.ReadFull(f.from, length[:]); err != nil {
			return 0, err //nolint:wrapcheck // it may be io.EOF
		}
		event, err := (&slimmer{from: f.from}).message(uint64(binary.BigEndian.Uint32(length[:])), slimWatchEvent)
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return 0, err
		}
		f.frame = append(binary.BigEndian.AppendUint32(nil, uint32(len(event))), event...) //nolint:gosec // at most maxSlimBytes and a little
	}
	n := copy(p, f.frame)
	f.frame = f.frame[n:]
	return n, nil
}
