package decoded

// In is a field of a message that is a message itself, which begins after some bytes.
type In struct {
	Field uint64
	After int
}

// maxDepth bounds how deep Remove looks.
const maxDepth = 8

// Remove removes the fields of a number from a message that is in others, and returns the outermost
// one. It does so in place: the lengths of the messages keep their bytes, as protobuf lets numbers
// have more of them than they need. What isn't protobuf, or has no such field, stays as it is.
func Remove(outermost []byte, path []In, number uint64) []byte {
	var lengths [maxDepth]part
	within := part{end: len(outermost)}
	for i, in := range path {
		next, ok := find(outermost, within, in.Field)
		if !ok || i == maxDepth || next.end-next.begin < in.After {
			return outermost
		}
		lengths[i] = next
		within = next
		within.begin += in.After
	}
	first, ok := find(outermost, within, number)
	if !ok {
		return outermost
	}
	end := first.end
	for {
		next, is := firstIn(outermost, part{begin: end, end: within.end})
		if !is || next.number != number {
			break
		}
		end = next.end
	}
	for _, l := range lengths[:len(path)] {
		l.write(outermost, l.end-l.begin-(end-first.at))
	}
	return append(outermost[:first.at], outermost[end:]...)
}

// part is a field of a message: it begins at its tag, its length follows, and then its content.
type part struct {
	number                 uint64
	at, length, begin, end int
}

// write writes another length, in as many bytes.
func (p part) write(message []byte, length int) {
	for i := p.length; i < p.begin; i++ {
		message[i] = byte(length) | 0x80
		length >>= 7
	}
	message[p.begin-1] &^= 0x80
}

// find returns the first field of a number.
func find(message []byte, within part, number uint64) (part, bool) {
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
func firstIn(message []byte, within part) (part, bool) {
	tag, n := varint(message[within.begin:within.end])
	if n <= 0 {
		return part{}, false
	}
	f := part{number: tag >> 3, at: within.begin, length: within.begin + n}
	value, n := varint(message[f.length:within.end])
	f.begin = f.length + n
	f.end = f.begin
	switch {
	case n <= 0:
		return part{}, false
	case tag&7 == 0:
		return f, true
	case tag&7 == 2 && value <= uint64(within.end-f.begin): //nolint:gosec // n bytes have been read
		f.end += int(value) //nolint:gosec // compared
		return f, true
	default:
		return part{}, false
	}
}
