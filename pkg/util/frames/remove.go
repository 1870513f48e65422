package frames

import (
	"bytes"
	"encoding/binary"
)

// step is a field of a message that is a message itself, after a prefix.
type step struct {
	field  uint64
	prefix []byte
}

// remove removes the fields of a number from a message that is in others, and returns the outermost
// one. It does so in place: the lengths of the messages keep their bytes, as protobuf lets numbers
// have more of them than they need. What isn't protobuf, or has no such field, stays as it is.
func remove(outermost []byte, path *[4]step, number uint64) []byte {
	var in [len(path)]field
	within := field{end: len(outermost)}
	for i, step := range path {
		next, ok := find(outermost, within, step.field)
		if !ok || !bytes.HasPrefix(outermost[next.begin:next.end], step.prefix) {
			return outermost
		}
		in[i], within = next, next
		within.begin += len(step.prefix)
	}
	first, ok := find(outermost, within, number)
	if !ok {
		return outermost
	}
	end := first.end
	for {
		next, is := firstIn(outermost, field{begin: end, end: within.end})
		if !is || next.number != number {
			break
		}
		end = next.end
	}
	for _, f := range in {
		f.write(outermost, f.end-f.begin-(end-first.at))
	}
	return append(outermost[:first.at], outermost[end:]...)
}

// field of a message: it begins at its tag, its length follows, and then its content.
type field struct {
	number                 uint64
	at, length, begin, end int
}

// write writes another length, in as many bytes.
func (f field) write(message []byte, length int) {
	for i := f.length; i < f.begin; i++ {
		message[i] = byte(length) | 0x80
		length >>= 7
	}
	message[f.begin-1] &^= 0x80
}

// find returns the first field of a number.
func find(message []byte, within field, number uint64) (field, bool) {
	for {
		f, ok := firstIn(message, within)
		if !ok || f.number == number {
			return f, ok
		}
		within.begin = f.end
	}
}

// firstIn returns the first field: a number, a text or a message, as all fields of Kubernetes'
// metadata are.
func firstIn(message []byte, within field) (field, bool) {
	tag, n := binary.Uvarint(message[within.begin:within.end])
	if n <= 0 {
		return field{}, false
	}
	f := field{number: tag >> 3, at: within.begin, length: within.begin + n}
	value, n := binary.Uvarint(message[f.length:within.end])
	f.begin = f.length + n
	f.end = f.begin
	switch {
	case n <= 0:
		return field{}, false
	case tag&7 == 0:
		return f, true
	case tag&7 == 2 && value <= uint64(within.end-f.begin): //nolint:gosec // n bytes have been read
		f.end += int(value) //nolint:gosec // compared
		return f, true
	default:
		return field{}, false
	}
}
