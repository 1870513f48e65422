package dispatchedjobs

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

const (
	// maxSlimBytes bounds what is kept of an answer, or of an event of a watch. A page of which more
	// would be kept is read with fewer objects.
	maxSlimBytes = 2 << 20
	// maxLabelBytes bounds what is kept of a Job's labels. The API bounds them only with the Job.
	maxLabelBytes = 128 << 10
	// fieldBytes is what a field is charged beside its value.
	fieldBytes = 8
	magic      = "k8s\x00" // begins each object in protobuf
	toTheEnd   = math.MaxUint64
)

var (
	errTooLarge  = errors.New("the hub's answer is too large")
	errMalformed = errors.New("the hub's answer isn't an object in protobuf")
)

// part says what is kept of a message. The zero value keeps all of it.
type part struct {
	fields map[uint64]part // by their numbers
	// isObject: it has an object and its kind, which says what is kept.
	isObject bool
	// most bounds the bytes that are kept of all values of the field. Zero: no bound.
	most int
	// keeps says by their keys which entries of a map are kept. Nil: all.
	keeps func(key string) bool
}

// kinds has what packages jobview and shards read of Jobs and events, by the API's field numbers.
var kinds = func() map[string]part {
	listOf := func(item part) part { return part{fields: map[uint64]part{1: {}, 2: item}} }
	job := part{fields: map[uint64]part{
		1: {fields: map[uint64]part{ // name, namespace, uid, resourceVersion, generation, both times, labels, annotations
			1: {}, 3: {}, 5: {}, 6: {}, 7: {}, 8: {}, 9: {}, 11: {most: maxLabelBytes}, 12: {keeps: isRead},
		}},
		2: {fields: map[uint64]part{1: {}, 2: {}, 9: {}, 10: {}, 15: {}}}, // parallelism, completions, completionMode, suspend, managedBy
		3: {},                                                             // status
	}}
	event := part{fields: map[uint64]part{
		1: {fields: map[uint64]part{1: {}, 3: {}, 5: {}, 6: {}, 8: {}}}, // name, namespace, uid, resourceVersion, creationTimestamp
		2: {fields: map[uint64]part{1: {}, 2: {}, 3: {}, 4: {}}},        // the involved object's kind, namespace, name, uid
		3: {}, 4: {}, 6: {}, 7: {}, 10: {}, 11: {}, 14: {},              // reason, message, times, series, reportingComponent
	}}
	return map[string]part{"Job": job, "JobList": listOf(job), "Event": event, "EventList": listOf(event)}
}()

// slimWatchEvent is an event of a watch: its type, and the object in a RawExtension.
var slimWatchEvent = part{fields: map[uint64]part{1: {}, 2: {fields: map[uint64]part{1: {isObject: true}}}}}

// isRead reports whether an annotation is Jobferry's, or that of a bookmark.
func isRead(annotation string) bool {
	return strings.HasPrefix(annotation, v1alpha1.GroupVersion.Group+"/") || annotation == metav1.InitialEventsAnnotationKey
}

// slimmer reads messages, and keeps parts of them. The others are never in memory.
type slimmer struct {
	from     *bufio.Reader
	at, kept uint64
}

// ReadByte implements io.ByteReader.
func (s *slimmer) ReadByte() (byte, error) {
	b, err := s.from.ReadByte()
	s.at++
	return b, err //nolint:wrapcheck // binary.ReadUvarint tells io.EOF from other errors
}

// object reads an object with its kind up to the end, which may be that of the answer.
func (s *slimmer) object(end uint64) ([]byte, error) {
	out, err := s.take(uint64(len(magic)))
	if err != nil || string(out) != magic {
		return nil, errors.Join(errMalformed, err)
	}
	const kindTag, objectTag = 1<<3 | 2, 2<<3 | 2
	var kind runtime.TypeMeta
	for s.at < end {
		tag, err := binary.ReadUvarint(s)
		if errors.Is(err, io.EOF) && end == toTheEnd {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		of := part{}
		if tag == objectTag {
			of = kinds[kind.Kind]
		}
		value, err := s.value(tag, of, tag == kindTag || tag == objectTag)
		if err == nil && tag == kindTag {
			err = kind.Unmarshal(value)
		}
		if err != nil {
			return nil, err
		}
		if tag == kindTag || tag == objectTag {
			out = appendField(out, tag, value)
		}
	}
	return out, nil
}

// message reads a message up to its end.
func (s *slimmer) message(end uint64, of part) ([]byte, error) {
	switch {
	case of.isObject:
		return s.object(end)
	case of.fields == nil:
		return s.take(end - s.at)
	}
	var out []byte
	bounded := 0 // bytes of the field that has a bound
	for s.at < end {
		tag, err := binary.ReadUvarint(s)
		if err != nil {
			return nil, err
		}
		field, keep := of.fields[tag>>3]
		value, err := s.value(tag, field, keep)
		if err != nil {
			return nil, err
		}
		if field.most > 0 {
			bounded += len(value)
			keep = bounded <= field.most
		}
		if keep && (field.keeps == nil || field.keeps(keyOf(value))) {
			s.kept += fieldBytes
			if field.fields == nil { // or else its fields are counted
				s.kept += uint64(len(value))
			}
			out = appendField(out, tag, value)
		}
		if s.kept > maxSlimBytes {
			return nil, errTooLarge
		}
	}
	if s.at != end {
		return nil, errMalformed
	}
	return out, nil
}

// value reads the value of a field, without its length. It's empty if it isn't kept.
func (s *slimmer) value(tag uint64, of part, keep bool) ([]byte, error) {
	switch tag & 7 {
	case 0:
		v, err := binary.ReadUvarint(s)
		return binary.AppendUvarint(nil, v), err
	case 1:
		return s.take(8)
	case 5:
		return s.take(4)
	case 2:
		length, err := binary.ReadUvarint(s)
		switch {
		case err != nil:
			return nil, err
		case length > math.MaxInt32:
			return nil, errMalformed
		case !keep:
			n, err := s.from.Discard(int(length))
			s.at += uint64(n)
			return nil, err
		}
		return s.message(s.at+length, of)
	}
	return nil, errMalformed
}

// take reads some bytes.
func (s *slimmer) take(n uint64) ([]byte, error) {
	if n > maxSlimBytes {
		return nil, errTooLarge
	}
	taken := make([]byte, n)
	_, err := io.ReadFull(s.from, taken)
	s.at += n
	return taken, err
}

func appendField(to []byte, tag uint64, value []byte) []byte {
	to = binary.AppendUvarint(to, tag)
	if tag&7 == 2 {
		to = binary.AppendUvarint(to, uint64(len(value)))
	}
	return append(to, value...)
}

// keyOf is the key of an entry of a map of strings.
func keyOf(entry []byte) string {
	const header = 2 // the field's tag, and its length, which is short for a key that matters
	if len(entry) < header || header+int(entry[1]) > len(entry) {
		return ""
	}
	return string(entry[header : header+int(entry[1])])
}
