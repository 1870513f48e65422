package jsonscan

// Structure tells the bytes of a JSON text that give it its structure from those of its strings.
// The zero value is at the begin of a text.
type Structure struct{ inString, escape bool }

// Has takes the next byte of the text, and reports whether it is outside of strings.
func (s *Structure) Has(b byte) bool {
	switch {
	case s.escape:
		s.escape = false
	case s.inString:
		s.escape, s.inString = b == '\\', b != '"'
	case b == '"':
		s.inString = true
	default:
		return true
	}
	return false
}
