// Package servetest has a client that takes no answers.
package servetest

import (
	"bytes"
	"net"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// Client asks by HTTP/2, and lets a server send so many bytes for an answer, beside its headers.
type Client struct {
	*http2.Framer
	t       testing.TB
	streams uint32
	block   bytes.Buffer
	headers *hpack.Encoder
}

// NewClient begins a connection.
func NewClient(t testing.TB, conn net.Conn, window uint32) *Client {
	t.Helper()
	c := &Client{Framer: http2.NewFramer(conn, conn), t: t}
	c.headers = hpack.NewEncoder(&c.block)
	_, err := conn.Write([]byte(http2.ClientPreface))
	if err == nil {
		err = c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: window})
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Get asks for a path, with a header.
func (c *Client) Get(path, name, value string) {
	c.t.Helper()
	c.block.Reset()
	for _, f := range []hpack.HeaderField{
		{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "https"}, {Name: ":authority", Value: "x"},
		{Name: ":path", Value: path}, {Name: name, Value: value},
	} {
		if err := c.headers.WriteField(f); err != nil {
			c.t.Fatal(err)
		}
	}
	id := 2*c.streams + 1
	c.streams++
	if err := c.WriteHeaders(http2.HeadersFrameParam{
		StreamID: id, BlockFragment: c.block.Bytes(), EndStream: true, EndHeaders: true,
	}); err != nil {
		c.t.Fatal(err)
	}
}

// Ended reads until so many requests have ended by a reset, and returns how many of those have got
// the headers of an answer.
func (c *Client) Ended(count int) (answered int) {
	c.t.Helper()
	began := map[uint32]bool{}
	for count > 0 {
		frame, err := c.ReadFrame()
		if err != nil {
			c.t.Fatalf("%d more were to end: %v", count, err)
		}
		switch of := frame.Header(); of.Type {
		case http2.FrameHeaders:
			began[of.StreamID] = true
		case http2.FrameRSTStream:
			count--
			if began[of.StreamID] {
				answered++
			}
		default:
		}
	}
	return answered
}
