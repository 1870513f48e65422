package link

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

	"github.com/jobferry/jobferry/pkg/util/quantities"
)

// maxDecodedBytes bounds what an answer, or an event of a watch, may become in memory: in protobuf
// two bytes are a Pod, which is a struct of more than a kilobyte.
const maxDecodedBytes = 64 << 20

// alwaysSmall is the size up to which nothing becomes much larger than smallAnswer.
const alwaysSmall = 1 << 10

// What is charged beside the size of a struct: for a string or another field, and for an entry of a
// map.
const (
	fieldBytes = 48
	entryBytes = 256
)

// magic begins each object in protobuf.
var magic = []byte("k8s\x00")

// checkObject returns what an object in protobuf becomes, or why it mayn't be decoded: it would be
// too large, or has a costly quantity. What client-go refuses to decode passes.
func checkObject(data []byte) (decoded int64, err error) {
	if isPlain(data) {
		return 0, nil
	}
	raw, ok := bytes.CutPrefix(data, magic)
	var envelope runtime.Unknown
	if !ok || envelope.Unmarshal(raw) != nil {
		return 0, nil
	}
	gv, err := schema.ParseGroupVersion(envelope.APIVersion)
	if err != nil {
		return 0, nil
	}
	object, err := scheme.Scheme.New(gv.WithKind(envelope.Kind))
	if err != nil {
		return 0, errTooLarge // without a kind, client-go takes it for what it has asked for
	}
	e := estimate{left: maxDecodedBytes}
	e.message(reflect.TypeOf(object).Elem(), envelope.Raw)
	switch {
	case e.costly:
		return 0, errCostly
	case e.left < 0:
		return 0, errTooLarge
	}
	return maxDecodedBytes - e.left, nil
}

// isPlain reports whether an answer is small, and has nothing costly.
func isPlain(data []byte) bool {
	return len(data) <= alwaysSmall && !quantities.MayHaveCostly(data)
}

// DecodedSize is about what an object takes in memory that was decoded, beside its own struct. The
// size in protobuf isn't: a small message can become a large struct.
func DecodedSize(o runtime.Object) int64 {
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
	return maxDecodedBytes - e.left
}

// checkEvent is checkObject for an event of a watch.
func checkEvent(frame []byte) (decoded int64, err error) {
	var event metav1.WatchEvent
	if isPlain(frame) || event.Unmarshal(frame) != nil {
		return 0, nil
	}
	return checkObject(event.Object.Raw)
}

// estimate subtracts what decoding allocates from what may be allocated, and looks for costly
// quantities.
type estimate struct {
	left   int64
	costly bool
}

// message reads a message as the generated Unmarshal of its type does. It charges a struct twice,
// as slices grow.
func (e *estimate) message(of reflect.Type, data []byte) {
	fields := fieldsOf(of)
	for len(data) > 0 && e.left >= 0 && !e.costly {
		tag, n := varint(data)
		if n <= 0 {
			return
		}
		data = data[n:]
		size := 0
		switch tag & 7 {
		case 0:
			_, size = varint(data)
		case 1:
			size = 8
		case 5:
			size = 4
		case 2:
			length, n := varint(data)
			if n <= 0 || length > uint64(len(data)-n) { //nolint:gosec // n bytes have been read of data
				return
			}
			data, size = data[n:], int(length)               //nolint:gosec // not more than data
			e.field(of, fields[uint32(tag>>3)], data[:size]) //nolint:gosec // the generated code cuts it off, too
		}
		// 3 and 4 begin and end a group, in which there are fields as here.
		if size < 0 || size > len(data) {
			return
		}
		data = data[size:]
	}
}

func (e *estimate) field(in, of reflect.Type, content []byte) {
	e.left -= fieldBytes + int64(len(content))
	switch {
	case in == quantities.Type:
		e.costly = e.costly || quantities.IsCostly(string(content)) // its only field
	case of == nil:
	case of.Kind() == reflect.Map:
		e.left -= entryBytes + int64(of.Elem().Size()) //nolint:gosec // a struct's size
		e.message(of, content)
	default:
		e.left -= 2 * int64(of.Size()) //nolint:gosec // a struct's size
		e.message(of, content)
	}
}

// varint reads a number as generated code does, which ignores what is beyond 64 bits. Zero or less
// as size: there is none.
func varint(data []byte) (number uint64, size int) {
	for i, b := range data[:min(len(data), binary.MaxVarintLen64)] {
		number |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			return number, i + 1
		}
	}
	return 0, -1
}

// messages has the fields of each type that are messages or maps, by their numbers. An entry of a
// map is a message with the value as its field 2.
var messages sync.Map

func fieldsOf(of reflect.Type) map[uint32]reflect.Type {
	if known, ok := messages.Load(of); ok {
		return known.(map[uint32]reflect.Type) //nolint:forcetypeassert // see below
	}
	fields := map[uint32]reflect.Type{}
	add := func(number uint32, of reflect.Type) {
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
			of = of.Elem()
		}
		if kind := of.Kind(); kind == reflect.Struct || kind == reflect.Map {
			fields[number] = of
		}
	}
	if of.Kind() == reflect.Map {
		add(2, of.Elem())
	} else {
		for i := range of.NumField() {
			if number, ok := numberIn(of.Field(i).Tag.Get("protobuf")); ok {
				add(number, of.Field(i).Type)
			}
		}
	}
	messages.Store(of, fields)
	return fields
}

// numberIn reads the field's number from a tag such as "bytes,2,opt,name=spec".
func numberIn(tag string) (uint32, bool) {
	_, rest, _ := strings.Cut(tag, ",")
	text, _, _ := strings.Cut(rest, ",")
	number, err := strconv.ParseUint(text, 10, 32)
	return uint32(number), err == nil
}
