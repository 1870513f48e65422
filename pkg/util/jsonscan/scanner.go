// Package jsonscan reads JSON that an API server sent, for little more memory than what is made of
// it. A Scanner walks through the text, and makes nothing of it. Unmarshal makes a typed object,
// each of whose lists is made of its length: lists that grow take several times as much.
//
// The package is pure.
package jsonscan

import (
	"bytes"
	"encoding/json"
)

// Scanner walks through JSON, value by value. If the text isn't JSON, what it finds means nothing,
// but it ends.
type Scanner struct {
	text []byte
	at   int
}

// New returns a scanner that is before the first value of a text.
func New(text []byte) *Scanner { return &Scanner{text: text} }

// Next is the first byte of the next value, by which its kind is known; zero: there is none.
func (s *Scanner) Next() byte {
	for ; s.at < len(s.text); s.at++ {
		switch b := s.text[s.at]; b {
		case ' ', '\t', '\r', '\n':
		default:
			return b
		}
	}
	return 0
}

// Skip passes the next value, and returns its text.
func (s *Scanner) Skip() []byte {
	first := s.Next()
	start := s.at
	switch first {
	case '"':
		s.skipString()
	case '{', '[':
		s.skipNested()
	default:
		s.at = min(s.at+1, len(s.text))
		if end := bytes.IndexAny(s.text[s.at:], ",:]} \t\r\n"); end >= 0 {
			s.at += end
		} else {
			s.at = len(s.text)
		}
	}
	return s.text[start:s.at]
}

func (s *Scanner) skipNested() {
	for depth := 0; s.at < len(s.text); {
		switch s.text[s.at] {
		case '"':
			s.skipString()
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if s.at++; depth == 0 {
			return
		}
	}
}

func (s *Scanner) skipString() {
	for s.at++; s.at < len(s.text); s.at++ {
		switch s.text[s.at] {
		case '\\':
			s.at++
		case '"':
			s.at++
			return
		}
	}
	s.at = len(s.text)
}

// Object passes the next value, and calls a function for each member, if it's an object. Within the
// call, the member's value is the next one. It needs not be passed.
func (s *Scanner) Object(member func(name []byte)) {
	s.nested('{', func() {
		name := Unquoted(s.Skip())
		if s.Next() == ':' {
			s.at++
		}
		s.each(func() { member(name) })
	})
}

// List is as Object, for the elements of a list.
func (s *Scanner) List(element func()) {
	s.nested('[', func() { s.each(element) })
}

func (s *Scanner) nested(open byte, part func()) {
	if s.Next() != open {
		s.Skip()
		return
	}
	s.at++
	for {
		switch s.Next() {
		case 0:
			return
		case ',':
			s.at++
		case open + 2: // that's what closes it, of both kinds
			s.at++
			return
		default:
			part()
		}
	}
}

// each calls a function that may pass the next value, and passes it otherwise.
func (s *Scanner) each(call func()) {
	s.Next()
	before := s.at
	if call(); s.at == before {
		s.Skip()
	}
}

// Values passes the next value, and counts it and all values in it.
func (s *Scanner) Values() int {
	n := 1
	switch s.Next() {
	case '{':
		s.Object(func([]byte) { n += s.Values() })
	case '[':
		s.List(func() { n += s.Values() })
	default:
		s.Skip()
	}
	return n
}

// Scalars passes all that follows, and calls a function with the text of each value that has no
// others in it, however deep it is.
func (s *Scanner) Scalars(do func(text []byte)) {
	for {
		switch s.Next() {
		case 0:
			return
		case '{', '}', '[', ']', ',', ':':
			s.at++
		default:
			if text := s.Skip(); s.Next() != ':' { // which follows a name
				do(text)
			}
		}
	}
}

// Member returns the text of a value in an object, by the names on the way to it; nil: there is
// none.
func Member(object []byte, names ...string) (value []byte) {
	if len(names) == 0 {
		return object
	}
	s := New(object)
	s.Object(func(name []byte) {
		if string(name) == names[0] {
			value = Member(s.Skip(), names[1:]...)
		}
	})
	return value
}

// Unquoted is what a string says.
func Unquoted(text []byte) []byte {
	if bytes.IndexByte(text, '\\') >= 0 {
		var s string
		_ = json.Unmarshal(text, &s) // what isn't a string has no name
		return []byte(s)
	}
	return bytes.Trim(text, `"`)
}
