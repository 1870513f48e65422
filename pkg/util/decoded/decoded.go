// Package decoded estimates what protobuf takes in memory when it's decoded. Its size doesn't tell:
// two bytes can become a struct of a kilobyte. The package is pure.
package decoded

import (
	"encoding/binary"
	"errors"
	"math"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/jobferry/jobferry/pkg/util/quantities"
)

// What is charged beside the size of a struct: for a string or another field, and for a map.
const (
	fieldBytes = 48
	mapBytes   = 128
	textBytes  = 16 // of a text in a list, by exact estimates
)

// What mayn't be decoded: whoever computes with the one may be busy for ever, and the other can't
// be encoded in JSON.
var (
	ErrCostly  = errors.New("a costly quantity")
	ErrNeither = errors.New("a value that is neither a number nor a text")
)

// Message returns about what decoding a message of a type allocates beside its own struct, and an
// error if it has something that mayn't be decoded. It reads no further than to the first such
// thing, or until the bytes exceed a limit.
func Message(of reflect.Type, data []byte, limit int64) (bytes int64, refused error) {
	e := estimate{left: limit}
	e.message(of, data)
	return limit - e.left, e.refused
}

// unknown is the size of what can't be encoded: more than anything has.
const unknown = 1 << 40

// Size is about what an object takes that was decoded from protobuf, beside its own struct.
func Size(o marshaler) int64 { return sizeOf(o, false) }

// Exact is about what an object takes that is decoded into lists of their lengths, as jsonscan does
// it, beside its own struct. It's what is allocated, too.
func Exact(o marshaler) int64 { return sizeOf(o, true) }

type marshaler interface{ Marshal() ([]byte, error) }

func sizeOf(o marshaler, exact bool) int64 {
	data, err := o.Marshal()
	if err != nil {
		return unknown
	}
	e := estimate{left: math.MaxInt64, exact: exact}
	e.message(reflect.TypeOf(o).Elem(), data)
	return math.MaxInt64 - e.left
}

// estimate subtracts what decoding allocates from what may be allocated, and looks for what mayn't
// be decoded.
type estimate struct {
	left    int64
	refused error
	// exact: no list grows.
	exact bool
}

// message reads a message as the generated Unmarshal of its type does.
func (e *estimate) message(of reflect.Type, data []byte) {
	fields := fieldsOf(of)
	before, nth := uint32(0), 0
	for len(data) > 0 && e.left >= 0 && e.refused == nil {
		tag, n := varint(data)
		if n <= 0 {
			return
		}
		data = data[n:]
		number := uint32(tag >> 3) //nolint:gosec // the generated code cuts it off, too
		if nth++; number != before {
			before, nth = number, 1
		}
		size, field := 0, fields[number]
		switch tag & 7 {
		case 0:
			size = e.varint(of, number, data)
			e.numbers(field, 1)
		case 1:
			size = 8
			e.numbers(field, 1)
		case 5:
			size = 4
			e.numbers(field, 1)
		case 2:
			length, n := varint(data)
			if n <= 0 || length > uint64(len(data)-n) { //nolint:gosec // n bytes have been read of data
				return
			}
			data, size = data[n:], int(length) //nolint:gosec // not more than data
			if field.number > 0 {              // many of them, packed
				e.numbers(field, size)
			} else {
				e.field(of, field.of, nth, data[:size])
			}
		}
		// 3 and 4 begin and end a group, in which there are fields as here.
		if size < 0 || size > len(data) {
			return
		}
		data = data[size:]
	}
}

// numberOrText is a type of which typeField says what a value is.
var numberOrText = reflect.TypeFor[intstr.IntOrString]()

const typeField = 1

// varint returns the size of a number in a message of some type.
func (e *estimate) varint(of reflect.Type, number uint32, data []byte) (size int) {
	value, size := varint(data)
	if of == numberOrText && number == typeField && value > uint64(intstr.String) {
		e.refused = ErrNeither
	}
	return size
}

// numbers charges some more numbers of a list, if the field is one: twice and a little, as slices
// grow.
func (e *estimate) numbers(of field, count int) {
	charge := of.number * int64(count)
	if e.exact {
		e.left -= charge * 9 / 8
	} else {
		e.left -= charge * 9 / 4
	}
}

// field charges a struct twice, as slices grow. It's the nth of its number in a row.
func (e *estimate) field(in, of reflect.Type, nth int, content []byte) {
	if e.exact {
		e.exactField(of, content)
		return
	}
	e.left -= fieldBytes
	switch {
	case in == quantities.Type:
		e.left -= allocated(content)
		if quantities.IsCostly(string(content)) { // its only field
			e.refused = ErrCostly
		}
	case of == nil: // bytes, which are copied
		e.left -= allocated(content)
	case of.Kind() == reflect.Map:
		e.entry(of, nth)
		e.message(of, content)
	default:
		e.left -= 2 * int64(of.Size()) //nolint:gosec // a struct's size
		e.message(of, content)
	}
}

// entry charges what a map allocates for its nth entry. With the first one it has room for eight,
// and then it grows as slices do. Who writes other fields in between pays for more maps than there
// are.
func (e *estimate) entry(of reflect.Type, nth int) {
	each := int64(of.Key().Size() + of.Elem().Size()) //nolint:gosec // sizes of types
	switch {
	case nth == 1:
		e.left -= mapBytes + 8*each*9/8 // the allocator rounds up
	case nth > 8:
		e.left -= 5 * each
	}
}

// exactField charges the allocator's rounding, by an eighth at most, and each entry of a map as one
// that is in a map of its own: growth is allocated, too.
func (e *estimate) exactField(of reflect.Type, content []byte) {
	switch {
	case of == nil:
		e.left -= textBytes
		if len(content) > 1 { // others are in the runtime
			e.left -= allocated(content) + 8
		}
	case of.Kind() == reflect.Map:
		e.entry(of, 1)
		e.message(of, content)
	default:
		e.left -= int64(of.Size()) * 9 / 8 //nolint:gosec // a struct's size
		e.message(of, content)
	}
}

// allocated is what bytes take that are copied: the allocator rounds them up, by an eighth or a
// page at most.
func allocated(content []byte) int64 {
	size := int64(len(content))
	return size + min(size/8, 8<<10)
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

// field of a message: of what type it is, if that is a message or a map, or, of a list of numbers
// or truth values, the size of one.
type field struct {
	of     reflect.Type
	number int64
}

// messages has such fields of each type, by their numbers. An entry of a map is a message with the
// value as its field 2.
var messages sync.Map

func fieldsOf(of reflect.Type) map[uint32]field {
	if known, ok := messages.Load(of); ok {
		return known.(map[uint32]field) //nolint:forcetypeassert // see below
	}
	fields := map[uint32]field{}
	add := func(number uint32, of reflect.Type) {
		isList := false
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice && of.Name() == "" {
			isList = isList || of.Kind() == reflect.Slice
			of = of.Elem()
		}
		switch kind := of.Kind(); {
		case kind == reflect.Struct || kind == reflect.Map || kind == reflect.Slice: // a list that has a name is a message
			fields[number] = field{of: of}
		case isList && kind != reflect.String && kind != reflect.Uint8: // bytes are one value
			fields[number] = field{number: int64(of.Size())} //nolint:gosec // a number's size
		}
	}
	switch of.Kind() {
	case reflect.Map:
		add(2, of.Elem())
	case reflect.Slice: // of texts
	default:
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
