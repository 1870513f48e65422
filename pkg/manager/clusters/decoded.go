package clusters

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"strconv"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// maxDecodedBytes bounds what an answer, or an event of a watch, may become in memory: in protobuf
// two bytes are a Pod, which is a struct of more than a kilobyte.
const maxDecodedBytes = 64 << 20

// alwaysAffordable is the size up to which nothing can become larger than that.
const alwaysAffordable = 16 << 10

// What is charged beside the size of a struct: for a string or another field, and for an entry of a
// map.
const (
	fieldBytes = 48
	entryBytes = 256
)

// magic begins each object in protobuf.
var magic = []byte("k8s\x00")

// affordable reports whether an object in protobuf may be decoded. What client-go refuses to decode
// is affordable.
func affordable(data []byte) bool {
	if len(data) <= alwaysAffordable {
		return true
	}
	raw, ok := bytes.CutPrefix(data, magic)
	var envelope runtime.Unknown
	if !ok || envelope.Unmarshal(raw) != nil {
		return true
	}
	gv, err := schema.ParseGroupVersion(envelope.APIVersion)
	if err != nil {
		return true
	}
	object, err := scheme.Scheme.New(gv.WithKind(envelope.Kind))
	if err != nil {
		return true
	}
	e := estimate{left: maxDecodedBytes}
	e.message(reflect.TypeOf(object).Elem(), envelope.Raw)
	return e.left >= 0
}

// decodedSize is about what an object takes in memory that was decoded. The size in protobuf isn't: a
// small message can become a large struct.
func decodedSize(o object) int64 {
	marshaller, is := o.(interface{ Marshal() ([]byte, error) })
	if !is {
		return maxDecodedBytes
	}
	data, err := marshaller.Marshal()
	if err != nil {
		return maxDecodedBytes
	}
	e := estimate{left: maxDecodedBytes}
	e.message(reflect.TypeOf(o).Elem(), data)
	return structBytes + maxDecodedBytes - e.left
}

// affordableEvent is affordable for an event of a watch.
func affordableEvent(frame []byte) bool {
	if len(frame) <= alwaysAffordable {
		return true
	}
	var event metav1.WatchEvent
	return event.Unmarshal(frame) != nil || affordable(event.Object.Raw)
}

// estimate subtracts what decoding allocates from what may be allocated.
type estimate struct{ left int64 }

// message reads a message as the generated Unmarshal of its type does. It charges a struct twice,
// as slices grow.
func (e *estimate) message(of reflect.Type, data []byte) {
	fields := fieldsOf(of)
	for len(data) > 0 && e.left >= 0 {
		tag, n := binary.Uvarint(data)
		if n <= 0 {
			return
		}
		data = data[n:]
		size := 0
		switch tag & 7 {
		case 0:
			_, size = binary.Uvarint(data)
		case 1:
			size = 8
		case 5:
			size = 4
		case 2:
			length, n := binary.Uvarint(data)
			if n <= 0 || length > uint64(len(data)-n) { //nolint:gosec // n bytes have been read of data
				return
			}
			data, size = data[n:], int(length) //nolint:gosec // not more than data
			e.field(fields[tag>>3], data[:size])
		}
		// 3 and 4 begin and end a group, in which there are fields as here.
		if size < 0 || size > len(data) {
			return
		}
		data = data[size:]
	}
}

func (e *estimate) field(of reflect.Type, content []byte) {
	e.left -= fieldBytes + int64(len(content))
	switch {
	case of == nil:
	case of.Kind() == reflect.Map:
		e.left -= entryBytes + int64(of.Elem().Size())
	default:
		e.left -= 2 * int64(of.Size()) //nolint:gosec // a struct's size
		e.message(of, content)
	}
}

// messages has the fields of each type that are messages or maps, by their numbers.
var messages sync.Map

func fieldsOf(of reflect.Type) map[uint64]reflect.Type {
	if known, ok := messages.Load(of); ok {
		return known.(map[uint64]reflect.Type) //nolint:forcetypeassert // see below
	}
	fields := map[uint64]reflect.Type{}
	for i := range of.NumField() {
		f := of.Field(i)
		number, ok := numberIn(f.Tag.Get("protobuf"))
		for f.Type.Kind() == reflect.Pointer || f.Type.Kind() == reflect.Slice {
			f.Type = f.Type.Elem()
		}
		if kind := f.Type.Kind(); ok && (kind == reflect.Struct || kind == reflect.Map) {
			fields[number] = f.Type
		}
	}
	messages.Store(of, fields)
	return fields
}

// numberIn reads the field's number from a tag such as "bytes,2,opt,name=spec".
func numberIn(tag string) (uint64, bool) {
	_, rest, _ := strings.Cut(tag, ",")
	text, _, _ := strings.Cut(rest, ",")
	number, err := strconv.ParseUint(text, 10, 32)
	return number, err == nil
}
