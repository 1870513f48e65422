// Package frames reads the events of watches in protobuf, and passes them on without their managed
// fields. These are half of an object's bytes, and nobody reads them in an event: so client-go
// neither copies nor decodes them. See the content type "application/vnd.kubernetes.protobuf" in
// the Kubernetes API concepts.
package frames

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
)

// UsualBytes is how large most events are at most: no more memory is taken before the bytes have
// come, or kept for the next event.
const UsualBytes = 16 << 10

// maxHubEvent bounds an event of the hub, as client-go does.
const maxHubEvent = 16 << 20

// Magic begins each object in protobuf.
var Magic = []byte("k8s\x00")

// ErrTooLarge is returned for an event that is larger than its bound.
var ErrTooLarge = errors.New("too large")

// header is the length of an event, before it.
const header = 4

// Reader reads the events of a watch.
type Reader struct {
	From io.Reader
	// MaxBytes bounds an event, in bytes.
	MaxBytes uint32
	// Check returns an error for an event that isn't passed on; nil: all are.
	Check func(event []byte) error

	read bytes.Buffer // the last event, which has been taken when the next one is read
}

// Next returns the next event, with its length before it. It's valid until the next one is read.
func (r *Reader) Next() ([]byte, error) {
	if r.read.Reset(); r.read.Cap() > 2*UsualBytes { // before the next event is waited for
		r.read = bytes.Buffer{}
	}
	var begin [header]byte
	if _, err := io.ReadFull(r.From, begin[:]); err != nil {
		return nil, err //nolint:wrapcheck // io.EOF ends the watch
	}
	length := binary.BigEndian.Uint32(begin[:])
	if length > r.MaxBytes {
		return nil, ErrTooLarge
	}
	r.read.Grow(header + int(min(length, UsualBytes)) + bytes.MinRead)
	r.read.Write(begin[:])
	if _, err := io.CopyN(&r.read, r.From, int64(length)); errors.Is(err, io.EOF) {
		return nil, io.ErrUnexpectedEOF
	} else if err != nil {
		return nil, err //nolint:wrapcheck // it's the answer's own
	}
	frame := r.read.Bytes()
	if r.Check != nil {
		if err := r.Check(frame[header:]); err != nil {
			return nil, err
		}
	}
	event := withoutManagers(frame[header:])
	binary.BigEndian.PutUint32(frame, uint32(len(event))) //nolint:gosec // not more than before
	return frame[:header+len(event)], nil
}

// metadata is where an event has its object's metadata: in the raw bytes of its object, after
// Magic, the field 1 of the content.
var metadata = [4]step{{field: 2}, {field: 1, prefix: Magic}, {field: 2}, {field: 1}}

// managedFields is their number in the metadata of any object.
const managedFields = 17

func withoutManagers(event []byte) []byte { return remove(event, &metadata, managedFields) }
