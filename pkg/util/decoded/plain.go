package decoded

// Plain reads a message as API servers write it, and copies nothing: its fields are texts or
// messages, numbered from one, none comes twice, and there are no others. Any other message is for
// the generated code, which knows what it means.
func Plain(message []byte, fields ...*[]byte) bool {
	for len(message) > 0 {
		tag, n := varint(message)
		if n <= 0 {
			return false
		}
		length, size := varint(message[n:])
		number := tag >> 3
		if size <= 0 || tag&7 != 2 || number < 1 || number > uint64(len(fields)) || *fields[number-1] != nil {
			return false
		}
		if message = message[n+size:]; length > uint64(len(message)) {
			return false
		}
		*fields[number-1], message = message[:length:length], message[length:]
	}
	return true
}
