// Package text makes texts of workers fit to be shown on the hub. Such a text is input from
// outside: it may be long, may not be UTF-8, and may have characters that a terminal obeys or that
// hide others.
package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of texts of workers on the hub's objects, in bytes.
const (
	// MaxMessage is for messages of conditions and notes of events, whose limit by the API it is.
	MaxMessage = 1024
	// MaxReason is for reasons of conditions.
	MaxReason = 128
)

const ellipsis = "..."

// Clean returns a text in one line of at most limit bytes, with an ellipsis if it was cut. White
// space and what isn't printable become single spaces: control characters, and those that change
// the direction of writing or have no width. Invalid UTF-8 becomes U+FFFD.
func Clean(s string, limit int) string {
	var b strings.Builder
	space := false
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		i += size
		if !unicode.IsGraphic(r) || unicode.IsSpace(r) {
			space = b.Len() > 0
			continue
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		b.WriteRune(r)
		if b.Len() > limit {
			return cut(b.String(), limit)
		}
	}
	return b.String()
}

// cut shortens a text that is longer than limit bytes.
func cut(s string, limit int) string {
	end := max(limit-len(ellipsis), 0)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return strings.TrimSpace(s[:end]) + ellipsis[:min(len(ellipsis), limit)]
}

// Reason returns the reason of a condition with only what the API allows in one, at most MaxReason
// bytes: letters, digits, underscores, commas and colons, beginning with a letter.
func Reason(s string) string {
	s = strings.TrimLeftFunc(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == ',', r == ':':
			return r
		default:
			return -1
		}
	}, s[:min(len(s), 4*MaxReason)]), func(r rune) bool { return !unicode.IsLetter(r) })
	return strings.TrimRight(s[:min(len(s), MaxReason)], ",:")
}
