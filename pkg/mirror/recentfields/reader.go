package recentfields

import (
	"bytes"
	"crypto/sha256"
	"hash"
	"io"
	"slices"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/jobferry/jobferry/pkg/util/jsonscan"
)

// reader looks for recent fields in JSON. A fingerprint is that of the list of all values of a
// path, as fingerprint makes it of their trees.
type reader struct {
	*jsonscan.Scanner
	found map[string]hash.Hash
	path  []byte
}

// visit passes a value of some type, and takes the recent fields in it.
func (r *reader) visit(of string) {
	outer := len(r.path)
	switch r.Next() {
	case '{':
		r.Object(func(name []byte) {
			r.path = append(append(r.path[:outer], '.'), name...)
			known, is := baseline[of][string(name)]
			r.member(known, is)
		})
	case '[':
		r.path = append(r.path, "[*]"...)
		r.List(func() { r.visit(of) })
	}
	r.path = r.path[:outer]
}

// member takes the next value, that of a field, if it's recent, or what is recent in it.
func (r *reader) member(known field, is bool) {
	switch {
	case r.Next() == 'n': // null
	case !is:
		r.take(r.Skip())
	case known.only != "":
		if value := r.Skip(); string(value) != `"`+known.only+`"` {
			r.take(value)
		}
	case known.of != "":
		r.visit(known.of)
	}
}

func (r *reader) take(value []byte) {
	sum, more := r.found[string(r.path)]
	if !more {
		sum = sha256.New()
		r.found[string(r.path)] = sum
	}
	separator := "["
	if more {
		separator = ","
	}
	_, _ = io.WriteString(sum, separator)
	canonical(sum, jsonscan.New(value))
}

// canonical writes the next value as marshal writes the tree of it.
func canonical(to io.Writer, s *jsonscan.Scanner) {
	separator := []byte(nil)
	switch s.Next() {
	case '{':
		type member struct{ name, value []byte }
		var members []member
		s.Object(func(name []byte) { members = append(members, member{name, s.Skip()}) })
		slices.SortStableFunc(members, func(a, b member) int { return bytes.Compare(a.name, b.name) })
		_, _ = io.WriteString(to, "{")
		for _, m := range members {
			_, _ = to.Write(separator)
			_, _ = to.Write(marshal(string(m.name)))
			_, _ = io.WriteString(to, ":")
			canonical(to, jsonscan.New(m.value))
			separator = []byte(",")
		}
		_, _ = io.WriteString(to, "}")
	case '[':
		_, _ = io.WriteString(to, "[")
		s.List(func() {
			_, _ = to.Write(separator)
			canonical(to, s)
			separator = []byte(",")
		})
		_, _ = io.WriteString(to, "]")
	default:
		_, _ = to.Write(canonicalScalar(s.Skip()))
	}
}

// canonicalScalar is a text, number or other value without others in it, as marshal writes it.
func canonicalScalar(text []byte) []byte {
	var value any
	if isPlain(text) || utiljson.Unmarshal(text, &value) != nil { // an error can't be: it was sent as JSON
		return text
	}
	return marshal(value)
}

// isPlain reports whether marshal surely writes a scalar as it is.
func isPlain(text []byte) bool {
	switch text[0] {
	case '"':
		return !bytes.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' || strings.ContainsRune(`\<>&`, r) })
	case 't', 'f', 'n':
		return true
	default:
		return len(text) <= 18 && !bytes.ContainsFunc(text, func(r rune) bool { return r < '0' || r > '9' })
	}
}
