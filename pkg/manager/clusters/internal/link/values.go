package link

import (
	"bytes"
	"io"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/jobferry/jobferry/pkg/util/frames"
	"github.com/jobferry/jobferry/pkg/util/jsonscan"
)

// elementBytes is what an element of a JSON value may become: a struct. maxElements bounds them.
const (
	elementBytes = 2 << 10
	maxElements  = maxDecodedBytes / elementBytes
)

// maxKeptEvent is after which event in JSON a watch ends: client-go keeps a buffer of twice its
// size until then. API servers send the events of the kinds that are watched in protobuf.
const maxKeptEvent = 512 << 10

// valueReader reads JSON, and counts the bytes and elements: of all, or of each value with what is
// before it, which is an event of a watch.
type valueReader struct {
	from     io.Reader
	limit    int
	eachAnew bool
	// hasCostly is what package quantities has for this kind of answer.
	hasCostly func(value []byte, kinds *runtime.Scheme) bool
	buffer    [32 << 10]byte

	value           bytes.Buffer // as far as it's read
	elements, depth int
	outside         jsonscan.Structure
	passed          int // of the bytes that next has returned last
}

// next returns a value, or several, or all at its end, and what they become. Nothing decodes a
// value that has no end.
func (r *valueReader) next() (values []byte, decoded int64, err error) {
	if r.passed > maxKeptEvent {
		return nil, 0, io.EOF
	}
	defer func() { r.passed = len(values) }()
	for len(values) == 0 {
		n, err := r.from.Read(r.buffer[:])
		for _, b := range r.buffer[:n] {
			r.value.WriteByte(b)
			whole := r.count(b)
			if r.value.Len() > r.limit || r.elements > maxElements {
				return nil, 0, errTooLarge
			}
			if !whole || !r.eachAnew {
				continue
			}
			if r.hasCostly(r.value.Bytes(), scheme.Scheme) {
				return nil, 0, errCostly
			}
			values = append(values, r.value.Bytes()...)
			decoded += r.decoded()
			if r.value.Reset(); r.value.Cap() > 2*frames.UsualBytes {
				r.value = bytes.Buffer{}
			}
			r.elements = 0
		}
		switch {
		case err == nil:
		case r.eachAnew:
			return append(values, r.value.Bytes()...), decoded, err
		case r.hasCostly(r.value.Bytes(), scheme.Scheme):
			return nil, 0, errCostly
		default:
			return r.value.Bytes(), r.decoded(), err
		}
	}
	return values, decoded, nil
}

// decoded is what the value becomes, as far as it's read.
func (r *valueReader) decoded() int64 { return int64(r.value.Len() + r.elements*elementBytes) }

// count takes the next byte, and reports whether a value ends with it.
func (r *valueReader) count(b byte) bool {
	if !r.outside.Has(b) {
		return false
	}
	switch b {
	case ',':
		r.elements++
	case '{', '[':
		r.depth++
		r.elements++
	case '}', ']':
		r.depth--
		return r.depth == 0
	}
	return false
}
